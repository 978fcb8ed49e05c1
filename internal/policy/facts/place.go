// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// severity orders places: if a path may be in several, the worst counts.
var severity = []string{"null", "workspace", "tmp", "home", "url", "dynamic", "control", "outside", "git", "secret"}

// ResolvePlace is the place that text names, as a path, for a command that runs in any of cwds. A
// word that is not static is classified by its literal prefix, and is "dynamic" if that
// prefix ends before a directory.
func ResolvePlace(text string, static bool, cwds []string, workspace Workspace) string {
	worst := "null"
	for _, cwd := range cwds {
		if p := placeIn(text, static, cwd, workspace); slices.Index(severity, p) > slices.Index(severity, worst) {
			worst = p
		}
	}
	return worst
}

func placeIn(text string, static bool, cwd string, workspace Workspace) string {
	switch {
	case text == "" && static:
		return "workspace"
	case strings.Contains(text, "://"):
		return "url"
	case workspace.Path == userHome && (text == "~" || strings.HasPrefix(text, "~/")):
		return placeOf(path.Clean(userHome+text[1:]), workspace)
	case strings.HasPrefix(text, "~"):
		return placeOf("/home/"+strings.TrimPrefix(text[1:], "/"), workspace)
	case !static && hiddenPrefix(text):
		return "git"
	case !static && strings.HasPrefix(text, "/") && workspace.nearSecret(text):
		return "secret"
	case !static && (!strings.Contains(text, "/") || text[0] != '/' && cwd == ""):
		return "dynamic"
	case isUncleanPath(text):
		return "secret"
	}
	full := text
	if !strings.HasPrefix(full, "/") {
		full = cmp.Or(cwd, workspace.Path) + "/" + full
		if place := placeOf(path.Clean(full), workspace); cwd == "" && place != "git" && place != "control" {
			return "dynamic" // except for what names such a file in any directory
		}
	}
	return placeOf(path.Clean(full), workspace)
}

var nullDevices = []string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero",
	"/dev/urandom", "/dev/random", "/dev/fd"}

var (
	descriptor = pattern.New(`^/dev/fd/[0-9]+$`)
	// openedToRead matches descriptors that a text opens for files to read, and that of the script that bash runs:
	// the kernel opens the file of one that is written to again.
	openedToRead = pattern.New(`^/dev/(stdin|fd/(0|[3-9]|[0-9]{2,}))$`)
)

// WrittenPlace is ResolvePlace for a file that is written.
func WrittenPlace(text string, static bool, cwds []string, workspace Workspace) string {
	place := ResolvePlace(text, static, cwds, workspace)
	if place == "null" && openedToRead.MatchString(path.Clean(text)) {
		return "outside"
	}
	return place
}

func placeOf(clean string, workspace Workspace) string {
	if workspace.Path == userHome {
		clean = resolveUserLink(clean)
	}
	rel, inside := relativePath(clean, workspace.Path)
	inside = inside && workspace.Path != ""
	switch {
	case slices.Contains(nullDevices, clean), descriptor.MatchString(clean):
		return "null"
	case strings.HasPrefix(clean, "/dev/fd/"): // below a directory that is open: any file
		return "secret"
	case isSecretPath(clean):
		return "secret"
	case inside && gitPath(rel):
		return "git"
	case inside && isControlFile(rel):
		return "control"
	case matchesAny(workspace.Added.secret, clean, rel): // not before git: nothing takes the place of what is guarded more
		return "secret"
	case inside && workspace.isControlFile(rel):
		return "control"
	case inside:
		return "workspace"
	}
	if rel, ok := relativePath(clean, "/tmp"); ok {
		if gitPath(rel) || isSettings(rel) {
			return "control" // of a repository there, or of programs that run with HOME=/tmp
		}
		return "tmp"
	}
	if isHome(clean) {
		return "home"
	}
	return "outside"
}

// userHome is the workspace of a sandbox for clients that expect it there. It is HOME, too.
const userHome = "/home/user"

// userLinks are the links of such a sandbox.
var userLinks = map[string]string{"/workspace": userHome, "/data": "/tmp/data", "/code": "/tmp/code",
	"/uploads": "/tmp/uploads"}

// resolveUserLink returns where clean leads in such a sandbox.
func resolveUserLink(clean string) string {
	for link, target := range userLinks {
		if rel, ok := relativePath(clean, link); ok {
			return path.Join(target, rel)
		}
	}
	return clean
}

// isSettings reports whether rel, a path below /tmp, is a control file whose name begins with a dot, or is
// below a directory of settings that programs with HOME=/tmp read.
func isSettings(rel string) bool {
	if path.Base(rel)[0] == '.' && isControlFile(rel) {
		return true
	}
	for part := range strings.SplitSeq(strings.ToLower(rel), "/") {
		if slices.Contains([]string{".config", ".cargo", ".docker", ".bundle", ".yarn", ".mvn"}, part) {
			return true
		}
	}
	return false
}

func relativePath(clean, dir string) (string, bool) {
	if clean == dir {
		return ".", true
	}
	rel, ok := strings.CutPrefix(clean, dir+"/")
	return rel, ok
}

func gitPath(rel string) bool {
	for _, part := range strings.Split(rel, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

// CwdTracker follows cd, as far as it is literal, to resolve relative paths. An unknown
// directory makes relative paths "dynamic". A cd of a child shell changes nothing for its parent.
type CwdTracker struct {
	workspace Workspace
	shells    []shellCwds // the text's own shell, and the child shells that the last command ran in
	started   []string    // the directories in which the last command starts its own; nil: in its own
	// What runs later than it is written may run in any directory of the text, and so may everything
	// if a cd runs later.
	all      []string
	anywhere bool
}

// shellCwds are the directories of one shell.
type shellCwds struct {
	via  []string // how it was started, as Command.Via
	cwds []string // in which a command may run
	then []string // those of a command that runs only if the cd before it in its list succeeded; nil if not known
}

// TrackCwds returns a tracker for commands, those of a text that starts in cwd of the workspace: an
// absolute path or one relative to it.
func TrackCwds(cwd string, workspace Workspace, commands []proposal.Command) *CwdTracker {
	if !path.IsAbs(cwd) {
		cwd = path.Join(workspace.Path, cwd)
	}
	start := CwdTracker{workspace: workspace, shells: []shellCwds{{cwds: []string{cwd}}}}
	first := start
	first.shells = slices.Clone(start.shells)
	for _, c := range commands {
		start.all = append(start.all, first.EnterCommand(c)...)
		first.RecordCommand(c)
		start.all = append(start.all, first.shells[len(first.shells)-1].cwds...)
		start.anywhere = start.anywhere || isDirectoryChange(c) && repeats(c)
	}
	start.all = mergeCwds(start.all)
	return &start
}

func isDirectoryChange(c proposal.Command) bool {
	return slices.Contains([]string{"cd", "chdir", "pushd", "popd"}, c.Program)
}

// repeats reports whether c may run before or after others than those around it in the text, in their shell.
func repeats(c proposal.Command) bool {
	inside := c.Inside
	for i, construct := range inside {
		if slices.Contains([]string{"subshell", "pipeline", "substitution", "background", "coproc"}, construct) {
			inside = c.Inside[i+1:] // what it does stays in there
		}
	}
	return runsLater(proposal.Command{Inside: inside, Via: c.Via})
}

// EnterCommand returns the directories in which c, the next command, may run.
func (t *CwdTracker) EnterCommand(c proposal.Command) []string {
	last := len(t.shells) - 1
	for !hasPrefix(c.Via, t.shells[last].via) {
		last--
	}
	t.shells = t.shells[:last+1]
	if shell := t.shells[last]; len(c.Via) > len(shell.via) {
		dirs := slices.Clone(shell.dirsOf(c))
		if t.started != nil {
			dirs = t.started
		}
		t.shells = append(t.shells, shellCwds{via: c.Via, cwds: dirs})
	}
	t.started = nil
	dirs := t.shells[len(t.shells)-1].dirsOf(c)
	if t.anywhere || slices.Contains(c.Via, "trap") || isInFunction(c) {
		return mergeCwds(append(slices.Clone(t.all), dirs...))
	}
	return dirs
}

func isInFunction(c proposal.Command) bool {
	return slices.ContainsFunc(c.Inside, func(construct string) bool {
		return strings.HasPrefix(construct, "function")
	})
}

func hasPrefix(words, prefix []string) bool {
	return len(words) >= len(prefix) && slices.Equal(words[:len(prefix)], prefix)
}

func (s *shellCwds) dirsOf(c proposal.Command) []string {
	if s.then != nil && isNextInList(c) {
		return s.then
	}
	return s.cwds
}

// isNextInList reports whether c is a later command of a list of && that is a statement of the text.
func isNextInList(c proposal.Command) bool {
	return c.AfterSuccess && slices.Equal(c.Inside, []string{"list"})
}

const maxCwds = 8

// RecordCommand records how c, which was entered, changes the directories in which later commands may run.
func (t *CwdTracker) RecordCommand(c proposal.Command) {
	shell := &t.shells[len(t.shells)-1]
	from := shell.dirsOf(c)
	if !isNextInList(c) || c.Function || slices.Contains([]string{".", "source", "eval"}, c.Program) {
		shell.then = nil // another list, or code that may run cd
	}
	t.started = startedIn(c, from)
	if !isDirectoryChange(c) {
		return
	}
	next := []string{""}
	if c.Program != "popd" {
		next = leadFrom(c, from)
	}
	shell.then = nil
	if slices.Equal(c.Inside, []string{"list"}) {
		shell.then = slices.Clone(next)
	}
	// A subshell does not change it, a branch may not be taken, and it may fail.
	if len(c.Inside) > 0 || len(c.Redirects) > 0 || climbs(c) ||
		slices.ContainsFunc(next, t.mayBeMissing) || slices.ContainsFunc(from, t.isGuarded) {
		next = append(next, shell.cwds...)
	}
	shell.cwds = mergeCwds(next)
	for i := range t.shells[:len(t.shells)-1] { // command, eval and trap run in the shell that has them
		outer := &t.shells[i]
		outer.cwds = mergeCwds(append(next, outer.cwds...))
		if outer.then != nil {
			outer.then = mergeCwds(append(next, outer.then...))
		}
	}
}

// startedIn returns the directories in which c, which runs in cwds, starts the commands of its words; nil if
// they are its own.
func startedIn(c proposal.Command, cwds []string) []string {
	switch path.Base(c.Program) {
	case "find":
		isExecDir := func(w proposal.Word) bool { return w.Value == "-execdir" || w.Value == "-okdir" }
		if slices.ContainsFunc(c.Args, isExecDir) {
			return []string{""}
		}
	case "env":
		return enteredByEnv(c.Args, cwds)
	}
	return nil
}

// enteredByEnv returns the directories that env's option -C or --chdir enters, nil if it has none.
func enteredByEnv(args []proposal.Word, cwds []string) []string {
	for i := 1; i < len(args) && strings.HasPrefix(args[i].Value, "-"); i++ {
		word := args[i].Value
		var dir string
		var attached bool
		if strings.HasPrefix(word, "--") {
			name := ""
			if name, dir, attached = strings.Cut(word, "="); name == "--unset" && !attached {
				i++ // its value
			}
			if !strings.HasPrefix(name, "--c") {
				continue
			}
		} else {
			at := strings.IndexAny(word, "Cu")
			if at < 0 {
				continue
			}
			dir, attached = word[at+1:], at+1 < len(word)
			if word[at] == 'u' {
				if !attached {
					i++
				}
				continue
			}
		}
		into := proposal.Word{Value: dir, Static: args[i].Static}
		if !attached {
			if i+1 == len(args) {
				return []string{""}
			}
			into = args[i+1]
		}
		return leadFrom(proposal.Command{Program: "cd", Args: []proposal.Word{args[0], into}}, cwds)
	}
	return nil
}

// climbs reports whether a cd goes to the parent of a directory that may be missing: a/../b.
func climbs(c proposal.Command) bool {
	return slices.ContainsFunc(c.Args[1:], func(w proposal.Word) bool {
		return climbing.MatchString(w.Value)
	})
}

var climbing = pattern.New(`[^./][^/]*/+(\./+)*\.\.(/|$)`)

// mayBeMissing reports whether a cd to dir may fail with an effect on places: a directory of the workspace
// that is not there changes the place of no path.
func (t *CwdTracker) mayBeMissing(dir string) bool {
	_, inside := relativePath(dir, t.workspace.Path)
	return !inside && dir != "/tmp" && dir != "/"
}

// isGuarded reports whether files of dir have another place than those of the directory to which a cd leads.
func (t *CwdTracker) isGuarded(dir string) bool {
	place := placeOf(dir, t.workspace)
	return place == "git" || place == "control" || place == "secret"
}

// mergeCwds returns dirs, each once. More than maxCwds are any directory.
func mergeCwds(dirs []string) []string {
	dirs = slices.Clone(dirs)
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) > maxCwds {
		return []string{""}
	}
	return dirs
}

// leadFrom returns the directories to which c leads from those of cwds.
func leadFrom(c proposal.Command, cwds []string) []string {
	args := c.Args[1:]
	for len(args) > 0 && args[0].Static && (args[0].Value == "--" || args[0].Value == "-P" || args[0].Value == "-L") {
		args = args[1:]
	}
	if len(args) != 1 || !args[0].Static || strings.HasPrefix(args[0].Value, "-") || args[0].Value == "" ||
		c.Program == "pushd" && args[0].Value[0] == '+' {
		return []string{""}
	}
	moved := make([]string, 0, len(cwds))
	for _, cwd := range cwds {
		switch {
		case path.IsAbs(args[0].Value):
			moved = append(moved, path.Clean(args[0].Value))
		case cwd == "":
			moved = append(moved, "")
		default:
			moved = append(moved, path.Join(cwd, args[0].Value))
		}
	}
	return moved
}
