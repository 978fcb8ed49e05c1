// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/document"
)

// A manifest is what is read of package.json. Each field is decoded by itself, so that one
// of the wrong type does not hide the others.
type manifest struct {
	PackageManager  json.RawMessage `json:"packageManager"`
	Workspaces      json.RawMessage `json:"workspaces"`
	Dependencies    json.RawMessage `json:"dependencies"`
	DevDependencies json.RawMessage `json:"devDependencies"`
	Optional        json.RawMessage `json:"optionalDependencies"`
	Peer            json.RawMessage `json:"peerDependencies"`
}

// node detects npm, pnpm, yarn and bun. The pin in packageManager decides, then the lock
// file.
func (s *scan) node(dir string) (covered []string) {
	text, ok := s.read(dir, "package.json")
	if !ok {
		return nil
	}
	var m manifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		s.note(dirFile(dir, "package.json"), "not used: it is not a JSON object")
		return nil
	}
	covered = workspaces(m.Workspaces)
	if s.has(dir, "pnpm-workspace.yaml") || s.has(dir, "lerna.json") {
		covered = append(covered, "*")
	}
	s.nodeNotes(dir, m)
	pin := s.pin(dir, m)
	manager, file := pin, "package.json"
	for _, lock := range []struct{ file, manager string }{
		{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"package-lock.json", "npm"}, {"npm-shrinkwrap.json", "npm"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
	} {
		if s.has(dir, lock.file) && (manager == "" || manager == lock.manager) {
			manager, file = lock.manager, lock.file
			break
		}
	}
	switch manager {
	case "pnpm":
		s.corepack(dir, file, "pnpm", pin != "", frozen(file, "pnpm", "install", "--frozen-lockfile"))
	case "yarn":
		s.corepack(dir, file, "yarn", pin != "", s.yarn(dir, file))
	case "bun":
		if s.tool(dir, file, "bun") {
			s.add(dir, step{id: "npm", file: file, why: "install packages", argv: frozen(file, "bun", "install", "--frozen-lockfile"), registry: "npm"})
		}
	default:
		s.npm(dir, file, m)
	}
	return covered
}

// frozen returns a command without its last word, which refuses to change the lock file, if
// there is no lock file.
func frozen(file string, argv ...string) []string {
	if file == "package.json" {
		return argv[:len(argv)-1]
	}
	return argv
}

func (s *scan) npm(dir, file string, m manifest) {
	argv, why := []string{"npm", "ci", "--no-audit", "--no-fund"}, "install exactly the packages of the lock file"
	if file == "package.json" {
		if len(names(m.Dependencies))+len(names(m.DevDependencies))+len(names(m.Optional))+len(names(m.Peer)) == 0 && m.Workspaces == nil {
			return
		}
		argv, why = []string{"npm", "install", "--no-audit", "--no-fund", "--no-package-lock"}, "install packages; there is no lock file"
	}
	if s.tool(dir, file, "npm") {
		s.add(dir, step{id: "npm", file: file, why: why, argv: argv, registry: "npm"})
	}
}

// yarn returns the command for yarn's generation, which the lock file shows.
func (s *scan) yarn(dir, file string) []string {
	if strings.Contains(s.head(dir, "yarn.lock"), "__metadata:") || file == "package.json" && s.has(dir, ".yarnrc.yml") {
		return frozen(file, "yarn", "install", "--immutable")
	}
	return frozen(file, "yarn", "install", "--non-interactive", "--frozen-lockfile")
}

// corepack adds the step of a manager that Corepack provides. A pin needs Corepack to be
// met; without one, the host's own tool is as good.
func (s *scan) corepack(dir, file, manager string, pinned bool, argv []string) {
	why := "install packages with " + manager
	if own := s.installed(manager); own && (!pinned || !s.installed("corepack")) {
		if pinned {
			s.note(dirFile(dir, "package.json"), "the version of %s is the host's, not the one in packageManager: corepack is not installed", manager)
		}
		s.add(dir, step{id: "npm", file: file, why: why, argv: argv, registry: "npm"})
		return
	}
	if !s.installed("corepack") {
		s.note(dirFile(dir, file), "could not set up: neither %s nor corepack is installed", manager)
		return
	}
	s.env("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0")
	s.env("COREPACK_ENABLE_AUTO_PIN", "0")
	s.path(".", Bin)
	if !s.shims {
		s.shims = true
		s.shimsID = s.add(".", step{
			id: "corepack", file: dirFile(dir, file), why: "make pnpm and yarn available to later commands",
			run: "mkdir -p " + Bin + " && corepack enable --install-directory " + Bin,
		})
	}
	s.add(dir, step{id: "npm", file: file, why: why + " through corepack", argv: slices.Concat([]string{"corepack"}, argv), registry: "npm", needs: s.shimsID})
}

var pinned = regexp.MustCompile(`^(npm|pnpm|yarn|bun)@[0-9][0-9A-Za-z.-]{0,63}(\+[0-9A-Za-z.]{1,200})?$`)

// pin returns the manager that packageManager names, or "".
func (s *scan) pin(dir string, m manifest) string {
	if m.PackageManager == nil {
		return ""
	}
	var text string
	if json.Unmarshal(m.PackageManager, &text) != nil || !pinned.MatchString(text) {
		s.note(dirFile(dir, "package.json"), "packageManager is not used: want a name and a version such as \"pnpm@9.1.0\"")
		return ""
	}
	name, _, _ := strings.Cut(text, "@")
	return name
}

// workspaces returns the patterns of npm's and yarn's workspaces.
func workspaces(raw json.RawMessage) []string {
	var list []string
	var nested struct {
		Packages []string `json:"packages"`
	}
	if json.Unmarshal(raw, &list) != nil && json.Unmarshal(raw, &nested) == nil {
		list = nested.Packages
	}
	return list[:min(len(list), 64)]
}

// names returns the names and versions of dependencies, nil if raw has none.
func names(raw json.RawMessage) map[string]string {
	var list map[string]string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

var (
	nodeElsewhere = regexp.MustCompile(`^(git[+:@]|github:|gitlab:|bitbucket:|https?:|[\w.-]+/[\w.-]+(#.*)?$)`)
	npmRegistry   = regexp.MustCompile(`(?m)^\s*(@[^:\s]+:)?registry\s*=\s*(\S+)`)
	yarnRegistry  = regexp.MustCompile(`(?m)^\s*npmRegistryServer:\s*(\S+)`)
)

// nodeNotes notes packages that do not come from the host's registry.
func (s *scan) nodeNotes(dir string, m manifest) {
	for _, raw := range []json.RawMessage{m.Dependencies, m.DevDependencies, m.Optional} {
		list := names(raw)
		for _, name := range sorted(list) {
			if nodeElsewhere.MatchString(list[name]) {
				s.note(dirFile(dir, "package.json"), "%s comes from %s, which is not a registry: it may not be reachable", document.Quote(name), document.Quote(list[name]))
				break
			}
		}
	}
	for _, config := range []struct {
		file    string
		pattern *regexp.Regexp
	}{{".npmrc", npmRegistry}, {".yarnrc", npmRegistry}, {".yarnrc.yml", yarnRegistry}} {
		text, _ := s.read(dir, config.file)
		for _, match := range config.pattern.FindAllStringSubmatch(text, 8) {
			if url := match[len(match)-1]; !strings.Contains(url, "://registry.npmjs.org") && !strings.Contains(url, "://registry.yarnpkg.com") {
				s.note(dirFile(dir, config.file), "names a registry of its own: only the host's npm registry can be read")
			}
		}
	}
}
