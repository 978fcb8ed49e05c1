// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// predictedIndex returns the index of a Command that has exactly the words of x, or -1. It is -1, too, if x may
// be a Command with words that only run time knows: that one was decided without them, and its
// standard input is another.
func (t *decidedText) predictedIndex(x proposal.Exec) int {
	if x.Partial || slices.ContainsFunc(t.commands,
		func(c proposal.Command) bool { return !isStatic(c) && mayStart(c, x) }) {
		return -1
	}
	return slices.IndexFunc(t.commands, func(c proposal.Command) bool {
		return startsFile(c) && len(c.Args) == len(x.Whole) && isStatic(c) && slices.Equal(c.Argv(), x.Whole)
	})
}

// leadsElsewhere reports whether x, which has the words of the command at an index, runs in a directory in
// which they were not judged, and one of them names a control file, a secret or git's own there.
func (t *decidedText) leadsElsewhere(at int, x proposal.Exec) bool {
	if slices.Contains(t.dirs[at], x.Cwd) {
		return false
	}
	return slices.ContainsFunc(x.Whole[1:], func(word string) bool {
		return slices.ContainsFunc(strings.FieldsFunc(word, isSeparator), func(name string) bool {
			place := facts.ResolvePlace(name, true, []string{x.Cwd}, t.workspace)
			return place == "git" || place == "control" || place == "secret"
		})
	})
}

func isSeparator(r rune) bool { return r == '=' || r == ',' || r == ':' }

// mayStart reports whether c, whatever its program, may have the words of x.
func mayStart(c proposal.Command, x proposal.Exec) bool {
	return !c.Function && len(c.Args) > 0 && canExpandTo(c.Args, x.Whole)
}

// originalArgv returns the argv that a script was called with, as far as it matters: the
// first word is the name by which it was found.
func (t *decidedText) originalArgv(x proposal.Exec, g *ProgramDecider) []string {
	name := x.Named
	written := slices.ContainsFunc(t.commands, func(c proposal.Command) bool { return c.Program == name })
	if base := path.Base(name); !written && g.looksUp(base, name) {
		name = base
	}
	return append([]string{name}, x.Whole[min(1, len(x.Whole)):]...)
}

// startsFile reports whether c, when it runs, execs a file of its name.
func startsFile(c proposal.Command) bool {
	return c.Program != "" && !c.Function && len(c.Args) > 0
}

func isStatic(c proposal.Command) bool {
	return !slices.ContainsFunc(c.Args, func(w proposal.Word) bool { return !w.Static })
}

// expectedIndex returns the index of a Command that x could be if dynamic words may have any
// value, or -1.
func (t *decidedText) expectedIndex(x proposal.Exec) int {
	return slices.IndexFunc(t.commands,
		func(c proposal.Command) bool { return startsFile(c) && canExpandTo(c.Args, x.Whole) })
}

// stdinSource returns the source of x's standard input: that of a matching command in the text,
// or else the worst case, a pipe with a program in it. For a shell it is always the worst
// case: the input that was analyzed with the text may not be the input that this shell
// reads.
//
// It is also the worst case if several commands match, unless none of them has an input.
func (t *decidedText) stdinSource(x proposal.Exec) string {
	at := t.expectedIndex(x)
	if at < 0 || strings.HasSuffix(path.Base(t.commands[at].Program), "sh") {
		return "pipe"
	}
	for i, c := range t.commands {
		if i != at && (c.StdinFrom != "" || t.commands[at].StdinFrom != "") && mayStart(c, x) {
			return "pipe"
		}
	}
	return t.commands[at].StdinFrom
}

// canExpandTo reports whether words may have expanded to argv.
func canExpandTo(words []proposal.Word, argv []string) bool {
	reach := []bool{true} // reach[n]: the words so far may have expanded to n of argv
	reach = append(reach, make([]bool, len(argv))...)
	for _, w := range words {
		next := make([]bool, len(reach))
		for n, ok := range reach {
			if !ok {
				continue
			}
			minimum, limit := 1, 1
			if w.Split {
				minimum, limit = 0, len(argv)
			} else if w.Glob {
				limit = len(argv)
			}
			for take := minimum; take <= limit && n+take <= len(argv); take++ {
				if next[n+take] {
					break // already covered from an earlier n
				}
				if take == 0 || canWordExpandTo(w, argv[n:n+take]) {
					next[n+take] = true
				} else {
					break
				}
			}
		}
		reach = next
	}
	return reach[len(argv)]
}

// canWordExpandTo reports whether w may have expanded to values. It checks only the last one; the
// caller has checked those before it.
func canWordExpandTo(w proposal.Word, values []string) bool {
	if w.Static {
		return values[0] == w.Value
	}
	return len(values) > 1 || strings.HasPrefix(values[0], w.Value)
}

// A directory that a text makes has a name that only mktemp knows. A text that names one literally was denied by the
// rules for literal values before.
const makesDirectory = "$(mktemp -d)"

func isNewDirectory(w proposal.Word) bool { return w.Head == makesDirectory && w.Tail == "" }

var (
	newDirectory = pattern.New(`^/tmp/tmp\.\w{10}$`)
	settingsHome = pattern.New(`^(HOME|XDG_\w+|\w+_HOME|GOPATH|PYTHONUSERBASE|MPLCONFIGDIR|JUPYTER_CONFIG_DIR)$`)
)

// assignsAll reports whether the text visibly assigns every value in changed.
func (t *decidedText) assignsAll(changed []proposal.Assign) bool {
	for _, c := range changed {
		if !slices.ContainsFunc(t.assigned[c.Name],
			func(w proposal.Word) bool {
				return w.Static && w.Value == c.Value.Value ||
					isNewDirectory(w) && newDirectory.MatchString(c.Value.Value)
			}) {
			return false
		}
	}
	return true
}

// isPlainFile reports whether the file of x is what its name suggests: found by the sandbox's
// own PATH, or the repository's own file named by a path.
func (g *ProgramDecider) isPlainFile(x proposal.Exec) bool {
	if len(x.Whole) == 0 {
		return false
	}
	name := x.Whole[0]
	if !strings.Contains(name, "/") {
		return g.looksUp(name, x.Named)
	}
	if name != x.Named {
		return false
	}
	return len(x.Same) == 0 && x.Layer != proposal.LayerRootfs || x.Path == name && x.Layer == proposal.LayerRootfs
}

// looksUp reports whether a search for name in the sandbox's PATH may have found file.
func (g *ProgramDecider) looksUp(name, file string) bool {
	return path.Base(file) == name && slices.Contains(g.Path, path.Dir(file))
}

// changedVariables returns changed with only the directories of PATH that the sandbox's own PATH lacks:
// what is found in its own directories is not what the text chose. A directory in which every
// command can write stays, wherever the sandbox looks, unless it comes after all others of the
// sandbox: no installed program is looked for there. Without others, PATH is not changed. A new directory for
// settings is as in the text t, if t makes one.
func (g *ProgramDecider) changedVariables(t *decidedText, changed []proposal.Assign) []proposal.Assign {
	kept := make([]proposal.Assign, 0, len(changed))
	for _, c := range changed {
		if c.Name == "PATH" && c.Value.Static && c.Value.Value != "" {
			added := slices.DeleteFunc(g.untilOwn(strings.Split(c.Value.Value, ":")), g.isSearched)
			if len(added) == 0 {
				continue
			}
			c.Value.Value = strings.Join(added, ":")
		}
		if settingsHome.MatchString(c.Name) && newDirectory.MatchString(c.Value.Value) &&
			slices.ContainsFunc(t.assigned[c.Name], isNewDirectory) {
			c.Value = proposal.Word{Head: makesDirectory}
		}
		kept = append(kept, c)
	}
	return kept
}

// untilOwn returns dirs without those that come after all of the sandbox's own PATH.
func (g *ProgramDecider) untilOwn(dirs []string) []string {
	missing := slices.DeleteFunc(slices.Clone(g.Path), func(dir string) bool { return !g.isSearched(dir) })
	if len(missing) == 0 {
		return dirs
	}
	for i, dir := range dirs {
		missing = slices.DeleteFunc(missing, func(own string) bool { return own == dir })
		if len(missing) == 0 {
			return dirs[:i+1]
		}
	}
	return dirs
}

// isSearched reports whether dir is one of the sandbox's own PATH, and not in a place that any command
// can write to. A directory of the workspace, where a set-up installs tools, is policy's to judge.
func (g *ProgramDecider) isSearched(dir string) bool {
	return path.IsAbs(dir) && slices.Contains(g.Path, dir) &&
		!slices.ContainsFunc(writablePlaces, func(place string) bool {
			return dir == place || strings.HasPrefix(dir, place+"/")
		})
}

// writablePlaces are the directories of the sandbox outside its read-only root file system.
var writablePlaces = []string{"/workspace", "/tmp", "/var/tmp", "/dev", "/proc", "/run", "/home/fumehood",
	"/home/user"}

// decidedNames returns the names under which x is decided: the one that its process uses, and if
// that is a path, also the tool of the root file system whose file or copy is at that
// path.
func (g *ProgramDecider) decidedNames(x proposal.Exec) []string {
	if len(x.Whole) > 0 && g.looksUp(x.Whole[0], x.Named) {
		return []string{x.Whole[0]}
	}
	names := []string{x.Named}
	switch base := path.Base(x.Path); {
	case x.Layer != proposal.LayerRootfs || x.Path == x.Named:
	case g.looksUp(base, x.Path) && g.isSearched(path.Dir(x.Path)):
		names = append(names, base)
	default:
		names = append(names, x.Path)
	}
	for _, same := range x.Same {
		if !slices.Contains(names, same) {
			names = append(names, same)
		}
	}
	return names
}

// otherNames returns the paths in the root file system of the program of x, if its process uses another
// one, or no path: a link or a copy in a place that any command can write to, or a mapping.
func otherNames(x proposal.Exec) []string {
	switch {
	case x.Layer != proposal.LayerRootfs:
		return x.Same
	case x.Loaded, slices.ContainsFunc(writablePlaces,
		func(place string) bool { return strings.HasPrefix(x.Asked, place+"/") }):
		return []string{x.Path}
	}
	return nil
}

// keyOf returns a digest of everything that an answer about x depends on; argv may be
// long, and there may be many.
func keyOf(x proposal.Exec) [sha256.Size]byte {
	b := sha256.New()
	fmt.Fprintf(b, "%d %q %q %q %s %q %q", x.Lineage, x.Named, x.Path, x.Cwd, x.Layer, x.Whole, x.Same)
	for _, c := range x.Changed {
		fmt.Fprintf(b, " %q=%q", c.Name, c.Value.Value)
	}
	return [sha256.Size]byte(b.Sum(nil))
}

// refuseInText returns a refusal whose message names the part of the text that x comes from.
func (t *decidedText) refuseInText(
	x proposal.Exec, d proposal.ExecDecision, rule, message, hint string,
) proposal.ExecDecision {
	return t.refusedFor(x, d, proposal.Reason{Rule: rule, Effect: proposal.Deny, Message: message, Suggestion: hint})
}

func (t *decidedText) refusedFor(x proposal.Exec, d proposal.ExecDecision, r proposal.Reason) proposal.ExecDecision {
	out := refuseExec(d, r.Rule, "", r.Suggestion)
	out.Reason.Layer = r.Layer
	at := t.expectedIndex(x)
	if at < 0 {
		out.Reason.Message = "not in the text: " + r.Message
		return out
	}
	out.Reason.Message = "with the words that it was started with: " + r.Message
	out.Reason.Command = t.commands[at].Index
	span := t.commands[at].Span
	out.Reason.Span = &span
	return out
}
