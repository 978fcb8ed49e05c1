// SPDX-License-Identifier: Apache-2.0

// Package setup detects how a repository's dependencies are installed: from lock files
// and manifests to the commands that a maintainer's CI would run, as proposals of the
// phase set-up. It serves "setup: auto" of the configuration file (see internal/source/config).
//
//	go.mod, go.work                    go mod download, then compile and vet dependencies
//	package-lock.json, npm-shrinkwrap  npm ci
//	package.json alone                 npm install
//	pnpm-lock.yaml, yarn.lock          pnpm or yarn, in the version that packageManager pins
//	bun.lock, bun.lockb                bun install
//	uv.lock, poetry.lock, pdm.lock,    the tool of that name, in the project's .venv
//	Pipfile.lock
//	requirements*.txt, pyproject.toml, a venv, then pip in it
//	setup.py
//	Cargo.toml                         cargo fetch
//	Gemfile                            bundle install
//	pom.xml, build.gradle              maven or gradle, or their wrappers, up to the tests
//
// and, from rows of policies.Registries, dotnet, composer, mix, dart, flutter, deno, pixi, conda and swift.
//
// The root directory is read, and those below it down to MaxDepth. A directory is a project if it is
// the root or has a lock file, and no workspace above it has it as a member, by the rules of its
// ecosystem: go.work, the workspaces of npm, yarn, pnpm, lerna, Cargo and uv, and the modules of
// Maven and Gradle. A directory that has a manifest alone is one if no project of its language is
// above it. Setup.ChoosePart returns what the commands of a plan need of all this.
//
// # What it promises
//
// The files are untrusted. They are read with bounds (MaxFile, MaxEntries, MaxDirectories, MaxDepth),
// nothing is executed, symbolic links are not followed, and commands are lists of words, so
// that no name needs quoting. A file that cannot be read is a Note, never a panic. The same
// tree and tools give the same Setup.
//
// Steps are proposals like any other: policy decides them, and grants their registries or
// not. A caller must give them no network beyond that. What they run, such as a package's
// install script, is the pull request's code, and belongs in the sandbox.
//
// # What it does not do
//
// It does not evaluate setup.py, build.gradle or other programs, so it does not know what
// they require. It installs no toolchain: Requirements says which versions the repository asks for. What it saw
// and left out, such as vcpkg or a private registry, is a Note.
package setup

import (
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of detection.
const (
	MaxFile        = 1 << 20 // bytes of a file that is read
	MaxEntries     = 4096    // of a directory; further ones are not seen
	MaxDirectories = 3000    // that are looked at
	MaxDepth       = 6       // of those, below the root
	MaxProjects    = 64      // below the root
	MaxSteps       = 24      // of a part
	MaxNotes       = 40
	MaxLinks       = 256 // with more, every directory counts as one
)

// Timeout is how long each step may take.
const Timeout = 10 * time.Minute

// Bin is a directory of the workspace for tools that set-up makes available.
const Bin = ".fumehood/bin"

// A Setup is what was detected.
type Setup struct {
	// Services start servers for the commands, before the Steps: see AddServices.
	Services []proposal.Proposal
	Steps    []Step
	// Env are variables for set-up and for the commands after it. They come from this
	// package, never from the repository, and are set by the caller, not by a proposal.
	Env map[string]string
	// Path are directories relative to the workspace, to put first in PATH, for set-up and
	// for the commands after it.
	Path  []string
	Notes []Note
	// Always are directories, relative to the workspace, that every part has.
	Always []string
	// Directories are those with a manifest or a lock file, except for documentation and examples.
	Directories []Directory
	// Links are symbolic links, relative to the workspace. A command in one may run in any project.
	Links []string
}

// A Directory is one of a project, or of a part of one.
type Directory struct {
	Path   string // relative to the workspace
	Locked bool   // it has a lock file: no project above it installs its packages
}

// A Step is one command of set-up.
type Step struct {
	// Proposal has the phase set-up, and in Why one line for people. It has no Env, and its
	// Network names registries only.
	proposal.Proposal
	// Optional means that the step only saves time: later commands work without it, and its
	// failure is not one of set-up. It writes nothing but a cache of which its tool checks each
	// entry by the content of Go files and the names in directories, so that for a workspace where
	// only those differ the cache is as good. Optional steps come last.
	Optional bool
	// Detected means that a Detector has found it: it makes dependencies and caches, and no file
	// that a command reads as the repository's. What other steps make is not known.
	Detected bool
	// Language and Dir are those of the project that a detected step is for. Both are "" for a step
	// that others need.
	Language, Dir string
	// Named means that only a command that runs in the project needs it: it is documentation or an
	// example, or has no lock file.
	Named bool
}

// RunsFirst reports whether every command may depend on what s makes.
func (s Setup) RunsFirst() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return !step.Detected })
}

// A Note is something that was seen and not done, or done with a reservation.
type Note struct {
	File string // relative to the workspace; untrusted
	Text string // may quote the repository; printable
}

// String returns the note in one printable line.
func (n Note) String() string { return document.Quote(n.File) + ": " + n.Text }

// Registries returns the names of the registries that the steps request, sorted.
func (s Setup) Registries() []string {
	names := map[string]bool{}
	for _, step := range s.Steps {
		for _, entry := range step.Network {
			names[strings.TrimPrefix(entry, "registry:")] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// A Detector detects set-up for a host. The zero Detector uses exec.LookPath.
type Detector struct {
	// LookPath finds a program that the sandbox will have. A tool without one becomes a Note
	// instead of a step.
	LookPath func(name string) (string, error)
}

// Detect detects the set-up of the repository at root. The root should refuse paths that
// leave it, as os.Root's FS does, and should not change meanwhile.
func (d Detector) Detect(root fs.FS) Setup {
	if d.LookPath == nil {
		d.LookPath = exec.LookPath
	}
	s := &setupScan{root: root, look: d.LookPath, ids: map[string]bool{}, covered: map[string][]workspaceMembers{},
		fetched: map[string]string{}, managers: map[string]string{}, found: Setup{Env: map[string]string{}}}
	for _, withLock := range []bool{true, false} { // what has a lock file takes precedence
		for _, dir := range s.listProjects() {
			if withLock && !isAside(dir.path) {
				s.found.Directories = append(s.found.Directories, Directory{dir.path, dir.locked})
			}
			switch locked := dir.path == "." || dir.locked; {
			case locked != withLock:
			case isPrintableName(dir.path):
				s.detectBelow(dir)
			case locked:
				s.addNote(dir.path, "left out: the directory's name has a character that is not allowed")
			}
		}
	}
	moveOptionalLast(s.found.Steps)
	if len(s.found.Steps) > 0 {
		s.found.Env["CI"] = "1"
	}
	return s.found
}

// moveOptionalLast moves optional steps behind all others, which do not need them: layers depend on
// less of what those at the end read.
func moveOptionalLast(steps []Step) {
	slices.SortStableFunc(steps, func(a, b Step) int {
		switch {
		case a.Optional == b.Optional:
			return 0
		case b.Optional:
			return -1
		}
		return 1
	})
}

// locks are the files that make a directory below the root a project of its own.
var locks = []string{
	"go.sum", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock",
	"requirements.txt", "Cargo.lock", "Gemfile.lock", "bun.lock", "bun.lockb",
}

// manifests are further files that steps are detected from, or that their tools read.
var manifests = []string{
	"go.mod", "go.work", "package.json", "pnpm-workspace.yaml", ".npmrc", ".yarnrc", ".yarnrc.yml", "pyproject.toml", "setup.py", "setup.cfg",
	"Cargo.toml", "Gemfile", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
	"gradle-wrapper.properties",
}

// IsSetupFile reports whether the file at path, relative to the repository, is one that says what
// set-up installs.
func IsSetupFile(file string) bool {
	name := path.Base(file)
	return slices.Contains(locks, name) || slices.Contains(manifests, name) || isTableFile(name, false) ||
		strings.Contains(name, "requirements") && strings.HasSuffix(name, ".txt") ||
		path.Base(path.Dir(file)) == "requirements" && strings.HasSuffix(name, ".txt")
}

// detectBelow detects the project in a directory.
func (s *setupScan) detectBelow(dir projectDir) {
	if dir.path != "." {
		if s.directories++; s.directories > MaxProjects {
			s.addNote(".", "more than %d directories have lock files or manifests: further ones are left out",
				MaxProjects)
			return
		}
	}
	s.dir = dir
	s.detectDirectory(dir.path)
}

// The languages of projects that are not in the table of installers.
const (
	Go     = "go"
	Node   = "node"
	Rust   = "rust"
	Python = "python"
	Ruby   = "ruby"
	Java   = "java"
)

// detectDirectory detects everything in dir. A workspace covers directories below it, each for its
// own language.
func (s *setupScan) detectDirectory(dir string) {
	detectors := map[string]func(dir string) (covered []string){Go: s.detectGo, Node: s.detectNode,
		Rust: s.detectRust, Python: s.detectPython, Ruby: s.detectRuby, Java: s.detectJava}
	for _, language := range slices.Concat([]string{Go, Node, Rust, Python, Ruby, Java}, tableLanguages) {
		if s.isCovered(language, dir) {
			continue
		}
		s.language = language
		var covered []string
		if detect := detectors[language]; detect != nil {
			covered = detect(dir)
		} else {
			covered = s.detectTable(language, dir)
		}
		if len(covered) > 0 {
			s.covered[language] = append(s.covered[language], workspaceMembers{dir, covered})
		}
	}
	if !isAside(dir) {
		s.noteUnsupported(dir)
	}
}

// maxPattern is the most bytes of a workspace's pattern, or of a directory in it.
const maxPattern = 255

// isPrintableName reports whether a directory's name may be the cwd of a proposal.
func isPrintableName(name string) bool {
	_, _, hidden := document.FirstHidden(name)
	return !hidden && !strings.ContainsAny(name, "\n\t\\") && len(name) <= 255 && utf8.ValidString(name)
}

// requireTool reports whether the host has a tool; otherwise a note says that file is left out.
func (s *setupScan) requireTool(dir, file, name string) bool {
	if s.hasTool(name) {
		return true
	}
	s.addNote(path.Join(dir, file), "could not set up: %s is not installed", name)
	return false
}

func (s *setupScan) hasTool(name string) bool {
	_, err := s.look(name)
	return err == nil
}

// A step is the short form of a Step.
type step struct {
	id       string   // without "setup-"
	file     string   // that it was detected from
	why      string   // what it does with it
	argv     []string // or
	run      string
	registry string   // "" for none
	also     []string // registries that it reads, too, where the configuration allows it
	needs    string   // the id of an earlier step; "" for none
	optional bool
	shared   bool // projects of several directories may need it
}

// addStep adds a step in dir, and returns its id.
func (s *setupScan) addStep(dir string, st step) string {
	p := proposal.Proposal{
		ID: s.uniqueID(st.id, dir), Argv: st.argv, Run: st.run, Phase: proposal.PhaseSetup,
		Timeout: proposal.Duration(Timeout),
		Why:     path.Join(dir, st.file) + ": " + st.why,
	}
	if dir != "." {
		p.Cwd = dir
	}
	if st.registry == "npm" && s.usesJSR {
		st.also = append(slices.Clip(st.also), "jsr")
	}
	for _, name := range slices.Concat([]string{st.registry}, st.also) {
		if name != "" {
			p.Network = append(p.Network, "registry:"+name)
		}
	}
	if st.needs != "" {
		p.Needs = []string{st.needs}
	}
	found := Step{Proposal: p, Optional: st.optional, Detected: true}
	if !st.shared {
		found.Language, found.Dir, found.Named = s.language, dir, dir != "." && (!s.dir.locked || isAside(dir))
	}
	s.found.Steps = append(s.found.Steps, found)
	return p.ID
}

var notInID = pattern.New(`[^A-Za-z0-9._-]+`)

// uniqueID returns "setup-NAME" for the root and "setup-NAME-DIR" below it, once.
func (s *setupScan) uniqueID(name, dir string) string {
	id := "setup-" + name
	if dir != "." {
		id += "-" + notInID.ReplaceAllString(dir, "-")
	}
	id = id[:min(len(id), 48)]
	unique := id
	for i := 2; s.ids[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", id, i)
	}
	s.ids[unique] = true
	return unique
}

// addPath puts a directory of dir first in PATH for later commands.
func (s *setupScan) addPath(dir, name string) {
	if p := path.Join(dir, name); !slices.Contains(s.found.Path, p) {
		s.found.Path = append(s.found.Path, p)
	}
}

// setEnv sets a variable for set-up and later commands.
func (s *setupScan) setEnv(name, value string) { s.found.Env[name] = value }
