// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/policies"
)

// An installer is a row of the table of installers, with the registry that has it.
type installer struct {
	policies.Installer
	registry string
}

// installers are all rows, and tableLanguages their languages, in the table's order.
var (
	installers     = listInstallers()
	tableLanguages = listLanguages()
)

func listInstallers() (list []installer) {
	for _, r := range policies.Registries() {
		for _, in := range r.Install {
			list = append(list, installer{in, r.Name})
		}
	}
	return list
}

func listLanguages() (names []string) {
	for _, in := range installers {
		if !slices.Contains(names, in.Language) {
			names = append(names, in.Language)
		}
	}
	return names
}

// isTableFile reports whether name is a file that a row names as a lock file or, if it is not to be
// locked, as a manifest.
func isTableFile(name string, locked bool) bool {
	return slices.ContainsFunc(installers, func(in installer) bool {
		return matchesName(in.Locks, name) || !locked && matchesName(in.Manifests, name)
	})
}

// matchesName reports whether one of the names is name, or ends like it behind a "*".
func matchesName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(want string) bool {
		ending, isEnding := strings.CutPrefix(want, "*")
		return want == name || isEnding && strings.HasSuffix(name, ending)
	})
}

// detectTable detects a project of a language of the table: the first row that fits and has its tool sets it
// up.
func (s *setupScan) detectTable(language, dir string) (covered []string) {
	missing, tool := "", "" // the first that fits
	for _, in := range installers {
		if in.Language != language {
			continue
		}
		manifest, fits := s.findManifest(dir, in)
		if !fits {
			continue
		}
		covered = in.Members
		file, lock := manifest, s.findFile(dir, in.Locks)
		if lock != "" {
			file = lock
		}
		if s.hasTool(in.Tool) {
			s.addInstaller(dir, file, in, lock != "")
			return covered
		}
		if missing == "" {
			missing, tool = file, in.Tool
		}
		if in.Contains != "" {
			break // another tool would not do
		}
	}
	if missing != "" {
		s.addNote(dirFile(dir, missing), "could not set up: %s is not installed", tool)
	}
	return covered
}

// addInstaller adds the steps of a row, each of which needs the one before it.
func (s *setupScan) addInstaller(dir, file string, in installer, locked bool) {
	commands := in.Unlocked
	if locked {
		commands = in.Locked
	}
	needs := ""
	for _, argv := range commands {
		needs = s.addStep(dir, step{id: in.ID, file: file, why: in.Why, argv: slices.Clone(argv),
			registry: in.registry, also: in.Registries, needs: needs})
	}
	for name, value := range in.Env {
		s.setEnv(name, value)
	}
	if in.Path != "" {
		s.addPath(dir, in.Path)
	}
}

// findManifest returns the manifest of a row in dir, if the row fits dir.
func (s *setupScan) findManifest(dir string, in installer) (name string, fits bool) {
	name = s.findFile(dir, in.Manifests)
	if name == "" || in.Contains == "" {
		return name, name != ""
	}
	text, _ := s.readText(dir, name)
	return name, strings.Contains(text, in.Contains)
}

// plainName matches the name of a file that is shown.
var plainName = pattern.New(`^[A-Za-z0-9._-]{1,128}$`)

// findFile returns the first of names that is a regular file in dir, or "". Of a name with a "*" it returns the
// first file, or the name itself if that has characters that are not shown.
func (s *setupScan) findFile(dir string, names []string) string {
	for _, want := range names {
		ending, isEnding := strings.CutPrefix(want, "*")
		if !isEnding {
			if s.hasFile(dir, want) {
				return want
			}
			continue
		}
		for _, e := range s.listDirectory(dir) {
			switch {
			case !strings.HasSuffix(e.Name(), ending) || !s.hasFile(dir, e.Name()):
			case plainName.MatchString(e.Name()):
				return e.Name()
			default:
				return want
			}
		}
	}
	return ""
}

// isPinnedByTable reports whether a command is one of a row whose lock file alone says what it leaves.
func isPinnedByTable(argv []string) bool {
	return slices.ContainsFunc(installers, func(in installer) bool {
		return in.Pinned &&
			slices.ContainsFunc(in.Locked, func(words []string) bool { return slices.Equal(words, argv) })
	})
}
