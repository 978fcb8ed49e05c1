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

// detectNode detects npm, pnpm, yarn and bun. The pin in packageManager decides, then the lock
// file.
func (s *setupScan) detectNode(dir string) (covered []string) {
	text, ok := s.readText(dir, "package.json")
	if !ok {
		return nil
	}
	var m manifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		s.addNote(dirFile(dir, "package.json"), "not used: it is not a JSON object")
		return nil
	}
	covered = append(parseWorkspaces(m.Workspaces), s.otherMembers(dir)...)
	s.nodeNotes(dir, m)
	pin := s.readPin(dir, m)
	manager, _, _ := strings.Cut(pin, "@")
	file := "package.json"
	for _, lock := range []struct{ file, manager string }{
		{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"package-lock.json", "npm"}, {"npm-shrinkwrap.json", "npm"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
	} {
		if s.hasFile(dir, lock.file) && (manager == "" || manager == lock.manager) {
			manager, file = lock.manager, lock.file
			break
		}
	}
	switch manager {
	case "pnpm":
		s.addPinnedSteps(dir, file, pin, s.pnpmVersion(dir),
			freezeIfLocked(file, "pnpm", "install", "--frozen-lockfile"))
	case "yarn":
		reads, argv := s.yarnVersion(dir, file)
		s.addPinnedSteps(dir, file, pin, reads, argv)
	case "bun":
		if s.requireTool(dir, file, "bun") {
			s.addStep(dir, step{id: "bun", file: file, why: "install packages",
				argv: freezeIfLocked(file, "bun", "install", "--frozen-lockfile"), registry: "npm"})
		}
	default:
		s.addNpmSteps(dir, file, m)
	}
	return covered
}

// freezeIfLocked returns a command without its last word, which refuses to change the lock file, if
// there is no lock file.
func freezeIfLocked(file string, argv ...string) []string {
	if file == "package.json" {
		return argv[:len(argv)-1]
	}
	return argv
}

func (s *setupScan) addNpmSteps(dir, file string, m manifest) {
	argv, why := []string{"npm", "ci", "--no-audit", "--no-fund"}, "install exactly the packages of the lock file"
	if file == "package.json" {
		if len(parseDependencies(m.Dependencies))+len(parseDependencies(m.DevDependencies))+
			len(parseDependencies(m.Optional))+len(parseDependencies(m.Peer)) == 0 && m.Workspaces == nil {
			return
		}
		argv, why = []string{"npm", "install", "--no-audit", "--no-fund", "--no-package-lock"},
			"install packages; there is no lock file"
	}
	if s.requireTool(dir, file, "npm") {
		s.addStep(dir, step{id: "npm", file: file, why: why, argv: argv, registry: "npm"})
	}
}

// pnpmLock and yarnLock match the version of a lock file's format.
var (
	pnpmLock = pattern.New(`(?m)^lockfileVersion: '?(\d+)\b`)
	yarnLock = pattern.New(`(?m)^__metadata:\s+version: (\d+)$`)
)

// pnpmVersion returns the newest version of pnpm that reads the lock file without changing it.
func (s *setupScan) pnpmVersion(dir string) string {
	switch m := pnpmLock.FindStringSubmatch(s.readHead(dir, "pnpm-lock.yaml")); {
	case m != nil && m[1] == "5":
		return "pnpm@7"
	case m != nil && m[1] == "6":
		return "pnpm@8"
	}
	return "pnpm@10"
}

// yarnVersion returns the version of yarn that reads the lock file without changing it, and its
// command.
func (s *setupScan) yarnVersion(dir, file string) (reads string, argv []string) {
	m := yarnLock.FindStringSubmatch(s.readHead(dir, "yarn.lock"))
	if m == nil && (file != "package.json" || !s.hasFile(dir, ".yarnrc.yml")) {
		return "yarn@1", freezeIfLocked(file, "yarn", "install", "--non-interactive", "--frozen-lockfile")
	}
	reads = "yarn@4"
	if m != nil && len(m[1]) == 1 && m[1] < "8" {
		reads = "yarn@3"
	}
	return reads, freezeIfLocked(file, "yarn", "install", "--immutable")
}

// Tools is a directory of the workspace in which npm installs the package managers that
// projects pin. Its programs are in node_modules/.bin below it.
const Tools = ".fumehood/npm"

// addPinnedSteps adds the steps of pnpm or yarn, in the version of the pin, or without a pin in the
// host's version or one that reads the lock file. npm installs it as it does any package.
// Corepack is needed only where the pin has a hash, which npm cannot check.
func (s *setupScan) addPinnedSteps(dir, file, pin, reads string, argv []string) {
	name, why := argv[0], "install packages with "+argv[0]
	version, hash, _ := strings.Cut(pin, "+")
	ours := step{id: name, file: file, why: why, argv: argv, registry: "npm"}
	switch {
	case hash != "" && s.hasTool("corepack"):
		ours.needs, ours.why, ours.argv = s.addCorepackStep(dir, file), why+" through corepack",
			slices.Concat([]string{"corepack"}, argv)
	case pin == "" && s.hasTool(name) && reads != "yarn@4" && reads != "yarn@3": // hosts have yarn 1
	case s.hasTool("npm"):
		if pin == "" {
			version = reads
			s.addNote(dirFile(dir, "package.json"), "has no packageManager: %s reads the lock file", reads)
		} else if hash != "" {
			s.addNote(dirFile(dir, "package.json"),
				"the hash in packageManager is not checked: corepack is not installed")
		}
		if ours.needs = s.addFetchStep(dir, file, name, version); ours.needs == "" {
			return
		}
	case s.hasTool(name):
		s.addNote(dirFile(dir, "package.json"),
			"the version of %s is the host's, not the one in packageManager: npm is not installed", name)
	default:
		s.addNote(dirFile(dir, file), "could not set up: neither %s nor npm is installed", name)
		return
	}
	s.addStep(dir, ours)
}

// addFetchStep adds the step that installs a package manager in Tools, once, and returns its id.
func (s *setupScan) addFetchStep(dir, file, name, version string) string {
	if s.fetched[name] == "" {
		s.addPath(".", Tools+"/node_modules/.bin")
		spec := pattern.New(`^yarn@([2-9]|\d\d)`).ReplaceAllString(version, "@yarnpkg/cli-dist@$1")
		s.fetched[name] = s.addStep(".", step{
			id: "get-" + name, file: dirFile(dir, file), why: "install " + version, registry: "npm", shared: true,
			argv: []string{"npm", "install", "--prefix", Tools, "--no-save", "--no-package-lock", "--no-audit",
				"--no-fund", "--ignore-scripts", spec},
		})
		s.managers[name] = version
	} else if s.managers[name] != version {
		s.addNote(dirFile(dir, file), "uses %s, as the projects above: one run has one version of %s", s.managers[name],
			name)
	}
	return s.fetched[name]
}

// addCorepackStep adds the step that makes pnpm and yarn available through Corepack, once, and
// returns its id.
func (s *setupScan) addCorepackStep(dir, file string) string {
	s.setEnv("COREPACK_ENABLE_DOWNLOAD_PROMPT", "0")
	s.setEnv("COREPACK_ENABLE_AUTO_PIN", "0")
	s.addPath(".", Bin)
	if s.shims == "" {
		s.shims = s.addStep(".", step{
			id: "corepack", file: dirFile(dir, file), why: "make pnpm and yarn available to later commands",
			shared: true,
			run:    "mkdir -p " + Bin + " && corepack enable --install-directory " + Bin,
		})
	}
	return s.shims
}

var pinnedManager = pattern.New(`^(npm|pnpm|yarn|bun)@[0-9][0-9A-Za-z.-]{0,63}(\+[0-9A-Za-z.]{1,200})?$`)

// readPin returns the manager, version and hash in packageManager, or "".
func (s *setupScan) readPin(dir string, m manifest) string {
	if m.PackageManager == nil {
		return ""
	}
	var text string
	if json.Unmarshal(m.PackageManager, &text) != nil || !pinnedManager.MatchString(text) {
		s.addNote(dirFile(dir, "package.json"),
			"packageManager is not used: want a name and a version such as \"pnpm@9.1.0\"")
		return ""
	}
	return text
}

// parseWorkspaces returns the patterns of npm's and yarn's workspaces.
func parseWorkspaces(raw json.RawMessage) []string {
	var list []string
	var nested struct {
		Packages []string `json:"packages"`
	}
	if json.Unmarshal(raw, &list) != nil && json.Unmarshal(raw, &nested) == nil {
		list = nested.Packages
	}
	return list[:min(len(list), 64)]
}

var (
	pnpmPackages = pattern.New(`(?m)^packages:[ \t]*\n((?:[ \t]*(?:-[^\n]*|#[^\n]*)?\n)+)`)
	listItem     = pattern.New(`(?m)^[ \t]*-[ \t]*["']?([^"'#\n]{1,255}?)["']?[ \t]*(?:#.*)?$`)
)

// otherMembers returns the patterns of pnpm's and lerna's workspaces.
func (s *setupScan) otherMembers(dir string) (covered []string) {
	if text, ok := s.readText(dir, "pnpm-workspace.yaml"); ok {
		m := pnpmPackages.FindStringSubmatch(text + "\n")
		if m == nil {
			return []string{"**"} // all packages, by default
		}
		for _, item := range listItem.FindAllStringSubmatch(m[1], 64) {
			covered = append(covered, item[1])
		}
	}
	if text, ok := s.readText(dir, "lerna.json"); ok {
		var lerna struct {
			Packages []string `json:"packages"`
		}
		if json.Unmarshal([]byte(text), &lerna) != nil || len(lerna.Packages) == 0 {
			lerna.Packages = []string{"packages/*"}
		}
		covered = append(covered, lerna.Packages[:min(len(lerna.Packages), 64)]...)
	}
	return covered
}

// parseDependencies returns the names and versions of dependencies, nil if raw has none.
func parseDependencies(raw json.RawMessage) map[string]string {
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

// nodeNotes notes packages that do not come from the host's registry, and finds out whether some come from JSR.
func (s *setupScan) nodeNotes(dir string, m manifest) {
	s.usesJSR = false
	for _, raw := range []json.RawMessage{m.Dependencies, m.DevDependencies, m.Optional} {
		list := parseDependencies(raw)
		for _, name := range sortedKeys(list) {
			s.usesJSR = s.usesJSR || strings.HasPrefix(list[name], "jsr:")
			if nodeElsewhere.MatchString(list[name]) {
				s.addNote(dirFile(dir, "package.json"),
					"%s comes from %s, which is not a registry: it may not be reachable", document.Quote(name), document.Quote(list[name]))
				break
			}
		}
	}
	for _, config := range []struct {
		file    string
		pattern *pattern.Pattern
	}{{".npmrc", npmRegistry}, {".yarnrc", npmRegistry}, {".yarnrc.yml", yarnRegistry}} {
		text, _ := s.readText(dir, config.file)
		for _, match := range config.pattern.FindAllStringSubmatch(text, 8) {
			switch url := match[len(match)-1]; {
			case strings.Contains(url, "://npm.jsr.io"):
				s.usesJSR = true
			case !strings.Contains(url, "://registry.npmjs.org") && !strings.Contains(url, "://registry.yarnpkg.com"):
				s.addNote(dirFile(dir, config.file),
					"names a registry of its own: only the host's npm registry can be read")
			}
		}
	}
}
