// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// managedTools is the content of a version manager's directory of PATH.
type managedTools struct {
	bins     []string // bin directories of the active versions
	complete bool     // a name that is in none of bins has no active version
	fix      string   // for names without an active version
}

// managedVersions returns the active versions if dir is the directory of a version manager, whose
// programs only start those of another directory. The versions are those for all of a
// user's projects: files of the workspace select none.
func managedVersions(dir string) (managedTools, bool) {
	root := filepath.Dir(dir)
	switch {
	case filepath.Base(dir) == "shims" && isDir(root, "versions"): // pyenv, rbenv, nodenv
		return envVersions(root), true
	case filepath.Base(dir) == "shims" && isDir(root, "installs"): // asdf, mise
		return asdfVersions(root), true
	case isDir(root, "tools/image") && isFile(dir, "volta"):
		return voltaVersions(root), true
	case isFile(dir, "rustup"):
		return rustupToolchain(root), true
	}
	return managedTools{}, false
}

// A version is one part of a path, and nothing else.
var version = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._+@-]*$`)

func envVersions(root string) managedTools {
	m := managedTools{complete: true,
		fix: "select a version that is installed, for example: " + strings.TrimPrefix(filepath.Base(root), ".") +
			" global VERSION"}
	for _, word := range strings.Fields(readSmall(filepath.Join(root, "version"))) {
		if word == "system" {
			continue
		}
		bin := filepath.Join(root, "versions", word, "bin")
		if !version.MatchString(word) || !isDir(bin, ".") {
			m.complete = false
			continue
		}
		m.bins = append(m.bins, bin)
	}
	return m
}

// asdfVersions returns what asdf or mise selects for every project, and the version of a tool
// that has only one.
func asdfVersions(root string) managedTools {
	m := managedTools{fix: "put the bin directory of the version first in PATH (asdf where TOOL, mise where TOOL)"}
	selected := toolVersions(root)
	entries, _ := os.ReadDir(filepath.Join(root, "installs"))
	for _, e := range entries {
		dir := filepath.Join(root, "installs", e.Name())
		v := selected[e.Name()]
		if v == "" || !version.MatchString(v) || !isDir(dir, v) {
			if v = onlyVersion(dir); v == "" {
				continue
			}
		}
		for _, bin := range []string{"bin", "go/bin", "."} {
			if bin != "." && isDir(dir, v+"/"+bin) || bin == "." && isFile(dir, v+"/dotnet") {
				m.bins = append(m.bins, filepath.Join(dir, v, bin))
			}
		}
	}
	return m
}

// onlyVersion returns the version in dir if there is just one; links are aliases.
func onlyVersion(dir string) string {
	entries, _ := os.ReadDir(dir)
	var found []string
	for _, e := range entries {
		if e.IsDir() && version.MatchString(e.Name()) {
			found = append(found, e.Name())
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// mise's file has lines such as: python = "3.12"
var miseLine = pattern.New(`(?m)^"?([A-Za-z0-9._-]+)"?\s*=\s*\[?\s*"([^"]+)"`)

// toolVersions returns the versions that the user's own file selects: ~/.tool-versions for
// ~/.asdf, ~/.config/mise/config.toml for ~/.local/share/mise.
func toolVersions(root string) map[string]string {
	selected := map[string]string{}
	home := filepath.Dir(root)
	if before, found := strings.CutSuffix(root, "/.local/share/mise"); found {
		home = before
		_, tools, _ := strings.Cut(readSmall(filepath.Join(home, ".config/mise/config.toml")), "[tools]")
		tools, _, _ = strings.Cut(tools, "\n[")
		for _, m := range miseLine.FindAllStringSubmatch(tools, -1) {
			selected[m[1]] = m[2]
		}
	}
	for line := range strings.Lines(readSmall(filepath.Join(home, ".tool-versions"))) {
		if words := strings.Fields(line); len(words) >= 2 && selected[words[0]] == "" {
			selected[words[0]] = words[1]
		}
	}
	return selected
}

// voltaVersions returns the tools of the default platform.
func voltaVersions(root string) managedTools {
	m := managedTools{fix: "volta pin or volta install the tool, or put the bin directory of the version first in PATH"}
	var platform struct {
		Node struct{ Runtime, Npm string }
		Pnpm string
		Yarn string
	}
	_ = json.Unmarshal([]byte(readSmall(filepath.Join(root, "tools/user/platform.json"))), &platform)
	for _, tool := range [][2]string{{"npm", platform.Node.Npm}, {"yarn", platform.Yarn}, {"pnpm", platform.Pnpm},
		{"node", platform.Node.Runtime}} {
		bin := filepath.Join(root, "tools/image", tool[0], tool[1], "bin")
		if version.MatchString(tool[1]) && isDir(bin, ".") {
			m.bins = append(m.bins, bin)
		}
	}
	return m
}

var rustupLine = pattern.New(`(?m)^default_toolchain\s*=\s*"([^"]+)"`)

// rustupToolchain returns the default toolchain. root is cargo's home, ~/.cargo.
func rustupToolchain(root string) managedTools {
	m := managedTools{fix: "rustup default TOOLCHAIN, or put the toolchain's bin directory first in PATH"}
	for _, name := range []string{".rustup", "rustup"} {
		home := filepath.Join(filepath.Dir(root), name)
		selected := rustupLine.FindStringSubmatch(readSmall(filepath.Join(home, "settings.toml")))
		if selected == nil || !version.MatchString(selected[1]) {
			continue
		}
		found, _ := filepath.Glob(filepath.Join(home, "toolchains", selected[1]+"-*", "bin"))
		if bin := filepath.Join(home, "toolchains", selected[1], "bin"); isDir(bin, ".") {
			found = []string{bin}
		}
		if len(found) == 1 && !slices.Contains(m.bins, found[0]) {
			m.bins = append(m.bins, found[0])
		}
	}
	return m
}
