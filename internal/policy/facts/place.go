// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// severity orders places: if a path may be in several, the worst counts.
var severity = []string{"null", "workspace", "tmp", "home", "url", "dynamic", "control", "outside", "git", "secret"}

// ResolvePlace is the place that text names, as a path, for a command that runs in any of cwds. A
// word that is not static is classified by its literal prefix, and is "dynamic" if that
// prefix ends before a directory.
func ResolvePlace(text string, static bool, cwds []string, workspace string) string {
	worst := "null"
	for _, cwd := range cwds {
		if p := placeIn(text, static, cwd, workspace); slices.Index(severity, p) > slices.Index(severity, worst) {
			worst = p
		}
	}
	return worst
}

func placeIn(text string, static bool, cwd, workspace string) string {
	switch {
	case text == "" && static:
		return "workspace"
	case strings.Contains(text, "://"):
		return "url"
	case strings.HasPrefix(text, "~"):
		return placeOf("/home/"+strings.TrimPrefix(text[1:], "/"), workspace)
	case !static && hiddenPrefix(text):
		return "git"
	case !static && strings.HasPrefix(text, "/") && nearSecret(text):
		return "secret"
	case !static && (!strings.Contains(text, "/") || text[0] != '/' && cwd == ""):
		return "dynamic"
	case isUncleanPath(text):
		return "secret"
	}
	full := text
	if !strings.HasPrefix(full, "/") {
		full = cmp.Or(cwd, workspace) + "/" + full
		if place := placeOf(path.Clean(full), workspace); cwd == "" && place != "git" && place != "control" {
			return "dynamic" // except for what names such a file in any directory
		}
	}
	return placeOf(path.Clean(full), workspace)
}

var nullDevices = []string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero",
	"/dev/urandom", "/dev/random", "/dev/fd"}

func placeOf(clean, workspace string) string {
	rel, inside := relativePath(clean, workspace)
	inside = inside && workspace != ""
	switch {
	case slices.Contains(nullDevices, clean), strings.HasPrefix(clean, "/dev/fd/"):
		return "null"
	case isSecretPath(clean):
		return "secret"
	case inside && gitPath(rel):
		return "git"
	case inside && isControlFile(rel):
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

// isSettings reports whether rel, a path below /tmp, is a control file whose name begins with a dot, or is
// below a directory of such files.
func isSettings(rel string) bool {
	base := path.Base(rel)
	return isControlFile(rel) && (base[0] == '.' || !isControlFile(base))
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
	workspace string
	shells    []shellCwds // the text's own shell, and the child shells that the last command ran in
}

// shellCwds are the directories of one shell.
type shellCwds struct {
	via  []string // how it was started, as Command.Via
	cwds []string // in which a command may run
	then []string // those of a command that runs only if the cd before it in its list succeeded; nil if not known
}

// TrackCwds returns a tracker for commands of a text that starts in cwd.
func TrackCwds(cwd, workspace string) *CwdTracker {
	return &CwdTracker{workspace, []shellCwds{{cwds: []string{cwd}}}}
}

// EnterCommand returns the directories in which c, the next command, may run.
func (t *CwdTracker) EnterCommand(c proposal.Command) []string {
	last := len(t.shells) - 1
	for !hasPrefix(c.Via, t.shells[last].via) {
		last--
	}
	t.shells = t.shells[:last+1]
	if dirs := t.shells[last].dirsOf(c); len(c.Via) > len(t.shells[last].via) {
		t.shells = append(t.shells, shellCwds{via: c.Via, cwds: slices.Clone(dirs)})
	}
	return t.shells[len(t.shells)-1].dirsOf(c)
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
	var next []string
	switch c.Program {
	case "cd", "pushd":
		next = leadFrom(c, from)
	case "popd":
		next = []string{""}
	default:
		return
	}
	shell.then = nil
	if slices.Equal(c.Inside, []string{"list"}) {
		shell.then = slices.Clone(next)
	}
	// A subshell does not change it, a branch may not be taken, and it may fail.
	if len(c.Inside) > 0 || len(c.Redirects) > 0 || slices.ContainsFunc(next, t.mayBeMissing) {
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

// mayBeMissing reports whether a cd to dir may fail with an effect on places: a directory of the workspace
// that is not there changes the place of no path.
func (t *CwdTracker) mayBeMissing(dir string) bool {
	_, inside := relativePath(dir, t.workspace)
	return !inside && dir != "/tmp" && dir != "/"
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
