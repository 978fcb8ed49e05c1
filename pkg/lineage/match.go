// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// predicts returns the place of a Command that has exactly the words of x, or -1.
func (t *text) predicts(x proposal.Exec) int {
	if x.Partial {
		return -1
	}
	return slices.IndexFunc(t.commands, func(c proposal.Command) bool {
		return starts(c) && len(c.Args) == len(x.Whole) && isStatic(c) && slices.Equal(c.Argv(), x.Whole)
	})
}

// original is the argv that a script was given, as far as it can matter: the first word
// is the name that its path was found by.
func (t *text) original(x proposal.Exec, g *Gate) []string {
	name := x.Named
	written := slices.ContainsFunc(t.commands, func(c proposal.Command) bool { return c.Program == name })
	if base := path.Base(name); !written && g.looksUp(base, name) {
		name = base
	}
	return append([]string{name}, x.Whole[min(1, len(x.Whole)):]...)
}

// starts reports whether c, when it runs, execs a file of its name.
func starts(c proposal.Command) bool {
	return c.Program != "" && !c.Function && len(c.Args) > 0
}

func isStatic(c proposal.Command) bool {
	return !slices.ContainsFunc(c.Args, func(w proposal.Word) bool { return !w.Static })
}

// expects returns the place of a Command that x could be, its dynamic words being
// anything, or -1.
func (t *text) expects(x proposal.Exec) int {
	return slices.IndexFunc(t.commands, func(c proposal.Command) bool { return starts(c) && fits(c.Args, x.Whole) })
}

// stdin is where x reads from: as the text says of a command with such words, or else
// the worst there is, a pipe with a program in it. What a shell reads there was analyzed
// with the text and may not be what this one reads, so of a shell it is always the worst.
func (t *text) stdin(x proposal.Exec) string {
	at := t.expects(x)
	if at < 0 || strings.HasSuffix(path.Base(t.commands[at].Program), "sh") {
		return "pipe"
	}
	return t.commands[at].StdinFrom
}

// fits reports whether argv may have come of words.
func fits(words []proposal.Word, argv []string) bool {
	reach := []bool{true} // reach[n]: the words so far may have given n of argv
	reach = append(reach, make([]bool, len(argv))...)
	for _, w := range words {
		next := make([]bool, len(reach))
		for n, ok := range reach {
			if !ok {
				continue
			}
			least, most := 1, 1
			if w.Split {
				least, most = 0, len(argv)
			} else if w.Glob {
				most = len(argv)
			}
			for take := least; take <= most && n+take <= len(argv); take++ {
				if next[n+take] {
					break // an earlier n has taken up to here
				}
				if take == 0 || give(w, argv[n:n+take]) {
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

// give reports whether w may have given the last of these values; the ones before it
// have been looked at.
func give(w proposal.Word, values []string) bool {
	if w.Static {
		return values[0] == w.Value
	}
	return len(values) > 1 || strings.HasPrefix(values[0], w.Value)
}

// assigns reports whether the text shows each of changed with this very value.
func (t *text) assigns(changed []proposal.Assign) bool {
	for _, c := range changed {
		if !slices.ContainsFunc(t.assigned[c.Name], func(w proposal.Word) bool { return w.Static && w.Value == c.Value.Value }) {
			return false
		}
	}
	return true
}

// plain reports whether the file of x is what its name says: found by the sandbox's
// own PATH, or the repository's own file under a path.
func (g *Gate) plain(x proposal.Exec) bool {
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
func (g *Gate) looksUp(name, file string) bool {
	return path.Base(file) == name && slices.Contains(g.Path, path.Dir(file))
}

// names are those under which x is decided: the one that its process gives, and where
// that is a path, the tool of the root file system whose file or copy lies there.
func (g *Gate) names(x proposal.Exec) []string {
	if len(x.Whole) > 0 && g.looksUp(x.Whole[0], x.Named) {
		return []string{x.Whole[0]}
	}
	names := []string{x.Named}
	if x.Layer == proposal.LayerRootfs && x.Path != x.Named {
		names = append(names, x.Path)
	}
	for _, same := range x.Same {
		if !slices.Contains(names, same) {
			names = append(names, same)
		}
	}
	return names
}

// keyOf is the digest of all that an answer about x rests on: argv may be long, and
// there may be many.
func keyOf(x proposal.Exec) [sha256.Size]byte {
	b := sha256.New()
	fmt.Fprintf(b, "%d %q %q %q %s %q %q", x.Lineage, x.Named, x.Path, x.Cwd, x.Layer, x.Whole, x.Same)
	for _, c := range x.Changed {
		fmt.Fprintf(b, " %q=%q", c.Name, c.Value.Value)
	}
	return [sha256.Size]byte(b.Sum(nil))
}

// refused is a refusal that says what of the text x is.
func (t *text) refused(x proposal.Exec, d proposal.ExecDecision, rule, message, hint string) proposal.ExecDecision {
	return t.refusedFor(x, d, proposal.Reason{Rule: rule, Effect: proposal.Deny, Message: message, Suggestion: hint})
}

func (t *text) refusedFor(x proposal.Exec, d proposal.ExecDecision, r proposal.Reason) proposal.ExecDecision {
	out := refused(d, r.Rule, "", r.Suggestion)
	out.Reason.Layer = r.Layer
	at := t.expects(x)
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
