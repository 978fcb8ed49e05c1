// SPDX-License-Identifier: Apache-2.0

package facts

import (
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
		if cwd == "" {
			return "dynamic"
		}
		full = cwd + "/" + full
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
		if strings.HasPrefix(path.Base(rel), ".") && isControlFile(rel) {
			return "control" // it would control programs that run with HOME=/tmp
		}
		return "tmp"
	}
	if isHome(clean) {
		return "home"
	}
	return "outside"
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
// directory makes relative paths "dynamic".
type CwdTracker struct {
	Cwds []string // in which a command may run
	then []string // those of a command that runs only if the cd before it in its list succeeded; nil if not known
}

// DirsOf returns the directories in which c, the next command, may run.
func (t *CwdTracker) DirsOf(c proposal.Command) []string {
	if t.then != nil && isNextInList(c) {
		return t.then
	}
	return t.Cwds
}

// isNextInList reports whether c is a later command of a list of && that is a statement of the text.
func isNextInList(c proposal.Command) bool {
	return c.AfterSuccess && slices.Equal(c.Inside, []string{"list"})
}

const maxCwds = 8

// RecordCommand records how c changes the directories in which later commands may run.
func (t *CwdTracker) RecordCommand(c proposal.Command) {
	from := t.DirsOf(c)
	if !isNextInList(c) || c.Function || slices.Contains([]string{".", "source", "eval"}, c.Program) {
		t.then = nil // another list, or code that may run cd
	}
	if c.Program != "cd" && c.Program != "pushd" {
		if c.Program == "popd" {
			t.Cwds, t.then = []string{""}, nil
		}
		return
	}
	next := leadFrom(c, from)
	t.then = nil
	if len(c.Via) == 0 && slices.Equal(c.Inside, []string{"list"}) {
		t.then = slices.Clone(next)
	}
	if len(c.Inside) > 0 { // a subshell does not change it, and a branch may not be taken
		next = append(next, t.Cwds...)
	}
	slices.Sort(next)
	if next = slices.Compact(next); len(next) > maxCwds {
		next = []string{""}
	}
	t.Cwds = next
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
