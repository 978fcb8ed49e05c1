// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/pattern"
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
	manager, _, _ := strings.Cut(pin, "@")
	file := "package.json"
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
		s.pinned(dir, file, pin, s.pnpm(dir), frozen(file, "pnpm", "install", "--frozen-lockfile"))
	case "yarn":
		reads, argv := s.yarn(dir, file)
		s.pinned(dir, file, pin, reads, argv)
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

// pnpmLock and yarnLock match the version of a lock file's format.
var (
	pnpmLock = pattern.New(`(?m)^lockfileVersion: '?(\d+)\b`)
	yarnLock = pattern.New(`(?m)^__metadata:\s+version: (\d+)$`)
)

// pnpm returns the newest version of pnpm that reads the lock file without changing it.
func (s *scan) pnpm(dir string) string {
	switch m := pnpmLock.FindStringSubmatch(s.head(dir, "pnpm-lock.yaml")); {
	case m != nil && m[1] == "5":
		return "pnpm@7"
	case m != nil && m[1] == "6":
		return "pnpm@8"
	}
	return "pnpm@10"
}

// yarn returns the version of yarn that reads the lock file without changing it, and its
// command.
func (s *scan) yarn(dir, file string) (reads string, argv []string) {
	m := yarnLock.FindStringSubmatch(s.head(dir, "yarn.lock"))
	if m == nil && (file != "package.json" || !s.has(dir, ".yarnrc.yml")) {
		return "yarn@1", frozen(file, "yarn", "install", "--non-interactive", "--frozen-lockfile")
	}
	reads = "yarn@4"
	if m != nil && len(m[1]) == 1 && m[1] < "8" {
		reads = "yarn@3"
	}
	return reads, frozen(file, "yarn", "install", "--immutable")
}

// Tools is a directory of the workspace in which npm installs the package managers that
// projects pin. Its programs are in node_modules/.bin below it.
const Tools = ".fumehood/npm"

// pinned adds the steps of pnpm or yarn, in the version of the pin, or without a pin in the
// host's version or one that reads the lock file. npm installs it as it does any package.
// Corepack is needed only where the pin has a hash, which npm cannot check.
func (s *scan) pinned(dir, file, pin, reads string, argv []string) {
	name, why := argv[0], "install packages with "+argv[0]
	version, hash, _ := strings.Cut(pin, "+")
	ours := step{id: "npm", file: file, why: why, argv: argv, registry: "npm"}
	switch {
	case hash != "" && s.installed("corepack"):
		ours.needs, ours.why, ours.argv = s.corepack(dir, file), why+" through corepack", slices.Concat([]string{"corepack"}, argv)
	case pin == "" && s.installed(name) && reads != "yarn@4" && reads != "yarn@3": // hosts have yarn 1
	case s.installed("npm"):
		if pin == "" {
			version = reads
			s.note(dirFile(dir, "package.json"), "has no packageManager: %s reads the lock file", reads)
		} else if hash != "" {
			s.note(dirFile(dir, "package.json"), "the hash in packageManager is not checked: corepack is not installed")
		}
		if ours.needs = s.fetch(dir, file, name, version); ours.needs == "" {
			return
		}
	case s.installed(name):
		s.note(dirFile(dir, "package.json"), "the version of %s is the host's, not the one in packageManager: npm is not installed", name)
	default:
		s.note(dirFile(dir, file), "could not set up: neither %s nor npm is installed", name)
		return
	}
	s.add(dir, ours)
}

// fetch adds the step that installs a package manager in Tools, once, and returns its id.
func (s *scan) fetch(dir, file, name, version string) string {
	if s.fetched[name] == "" {
		s.path(".", Tools+"/node_modules/.bin")
		spec := pattern.New(`^yarn@([2-9]|\d\d)`).ReplaceAllString(version, "@yarnpkg/cli-dist@$1")
		s.fetched[name] = s.add(".", step{
			id: name, file: dirFile(dir, file), why: "install " + version, registry: "npm",
			argv: []string{"npm", "install", "--prefix", Tools, "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", spec},
		})
		s.managers[name] = version
	} else if s.managers[name] != version {
		s.note(dirFile(dir, file), "uses %s, as the projects above: one run has one version of %s", s.managers[name], name)
	}
	return s.fetched[name]
}

// corepack adds the step that makes pnpm and yarn available through Corepack, once, and
// returns its id.
func (s *scan) corepack(dir, file string) string {
	s.env("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0")
	s.env("COREPACK_ENABLE_AUTO_PIN", "0")
	s.path(".", Bin)
	if s.shims == "" {
		s.shims = s.add(".", step{
			id: "corepack", file: dirFile(dir, file), why: "make pnpm and yarn available to later commands",
			run: "mkdir -p " + Bin + " && corepack enable --install-directory " + Bin,
		})
	}
	return s.shims
}

var pinnedManager = pattern.New(`^(npm|pnpm|yarn|bun)@[0-9][0-9A-Za-z.-]{0,63}(\+[0-9A-Za-z.]{1,200})?$`)

// pin returns the manager, version and hash in packageManager, or "".
func (s *scan) pin(dir string, m manifest) string {
	if m.PackageManager == nil {
		return ""
	}
	var text string
	if json.Unmarshal(m.PackageManager, &text) != nil || !pinnedManager.MatchString(text) {
		s.note(dirFile(dir, "package.json"), "packageManager is not used: want a name and a version such as \"pnpm@9.1.0\"")
		return ""
	}
	return text
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
	nodeElsewhere = pattern.New(`^(git[+:@]|github:|gitlab:|bitbucket:|https?:|[\w.-]+/[\w.-]+(#.*)?$)`)
	npmRegistry   = pattern.New(`(?m)^\s*(@[^:\s]+:)?registry\s*=\s*(\S+)`)
	yarnRegistry  = pattern.New(`(?m)^\s*npmRegistryServer:\s*(\S+)`)
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
		pattern *pattern.Pattern
	}{{".npmrc", npmRegistry}, {".yarnrc", npmRegistry}, {".yarnrc.yml", yarnRegistry}} {
		text, _ := s.read(dir, config.file)
		for _, match := range config.pattern.FindAllStringSubmatch(text, 8) {
			if url := match[len(match)-1]; !strings.Contains(url, "://registry.npmjs.org") && !strings.Contains(url, "://registry.yarnpkg.com") {
				s.note(dirFile(dir, config.file), "names a registry of its own: only the host's npm registry can be read")
			}
		}
	}
}
