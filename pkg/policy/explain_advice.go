// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds on what is tried for one proposal: a hostile plan has two hundred of them, and
// what is tried must not depend on how fast the machine is.
const (
	mostTried    = 12 // decisions about changes of the text
	mostExamples = 8  // decisions about examples, of one reason
	mostParts    = 4  // commands of a text that is changed
	mostKnown    = 4096
	mostAdvised  = 6 // reasons
)

// An Adviser finds what would be allowed instead of what was refused. It may be used
// by several goroutines.
//
// It promises that each alternative is a text that the Engine allows when it is proposed
// by itself as run: it was decided, as any proposal is. It changes nothing of a Decision
// but the Alternatives of its Reasons, and the same questions have the same answers, so
// that who decides again finds the same.
//
// It does not promise that an alternative does what was meant.
type Adviser struct {
	engine  *Engine
	analyse func(proposal.Proposal) proposal.Analysis

	mu    sync.Mutex
	known map[string]tried
}

// A tried is what became of one text.
type tried struct {
	canonical string
	program   string // of its first command
	against   int    // reasons that are heeded
	allowed   bool
}

// NewAdviser makes an Adviser for what e decides, which analyse reads.
func NewAdviser(e *Engine, analyse func(proposal.Proposal) proposal.Analysis) *Adviser {
	return &Adviser{engine: e, analyse: analyse, known: map[string]tried{}}
}

// Advise returns d with Alternatives.
func (v *Adviser) Advise(ctx context.Context, p proposal.Proposal, a proposal.Analysis, d proposal.Decision) proposal.Decision {
	if d.Effect == proposal.Allow {
		return d
	}
	d.Reasons = slices.Clone(d.Reasons)
	told := map[string]bool{strings.TrimSpace(a.Canonical): true}
	first, advised := true, 0
	for i := range d.Reasons {
		r := &d.Reasons[i]
		if r.Observed || advised == mostAdvised {
			continue
		}
		advised++
		var found []string
		if first {
			found, first = v.variations(ctx, p, a), false
		}
		for _, text := range append(found, v.examples(ctx, a, *r)...) {
			if len(r.Alternatives) < proposal.MaxAlternatives && !told[text] {
				told[text] = true
				r.Alternatives = append(r.Alternatives, text)
			}
		}
	}
	return d
}

// try decides text by itself.
func (v *Adviser) try(ctx context.Context, text string) tried {
	v.mu.Lock()
	t, there := v.known[text]
	v.mu.Unlock()
	if there || ctx.Err() != nil || len(text) > proposal.MaxAlternative {
		return t
	}
	p := proposal.Proposal{ID: "alternative", Run: text}
	a := v.analyse(p)
	d, err := v.engine.Decide(ctx, p, a)
	if err == nil {
		t = tried{canonical: oneLine(a.Canonical, text), program: programIn(a), against: heeded(d)}
		t.allowed = d.Effect == proposal.Allow && t.canonical != "" && len(t.canonical) <= proposal.MaxAlternative
	} else {
		t = tried{against: 1 << 20}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) < mostKnown {
		v.known[text] = t
	}
	return t
}

// oneLine is the text as it is printed, which was decided too, or as it was tried: who
// shows an alternative shows one line. It is "" where neither is one.
func oneLine(canonical, text string) string {
	for _, s := range []string{canonical, text} {
		if s = strings.TrimSpace(s); !strings.Contains(s, "\n") {
			return s
		}
	}
	return ""
}

func heeded(d proposal.Decision) int {
	n := 0
	for _, r := range d.Reasons {
		if !r.Observed {
			n++
		}
	}
	return n
}

// programIn is the plain name of the first program of a.
func programIn(a proposal.Analysis) string {
	for _, c := range a.Commands {
		if c.Program != "" {
			return facts.ToolName(path.Base(c.Program))
		}
	}
	return ""
}

// examples are commands from METADATA for the program that r is about: what rules that
// allow it match, and what the rule that refused it does not.
func (v *Adviser) examples(ctx context.Context, a proposal.Analysis, r proposal.Reason) []string {
	program, near := "", a.Canonical
	if r.Command >= 0 && r.Command < len(a.Commands) {
		c := a.Commands[r.Command]
		program, near = facts.ToolName(path.Base(c.Program)), textOf(c)
	}
	if program == "." || program == "" {
		return nil
	}
	texts := v.engine.exampleTexts(program, r)
	slices.SortStableFunc(texts, func(x, y string) int {
		return cmp.Or(cmp.Compare(likeness(y, near, r.Suggestion), likeness(x, near, r.Suggestion)), cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	})
	var found []string
	for i, text := range texts {
		if i == mostExamples || len(found) == proposal.MaxAlternatives {
			break
		}
		t := v.try(ctx, text)
		if t.allowed && (t.program == program || r.Layer != LayerFloor && facts.HoldsWord(r.Suggestion, t.program)) {
			found = append(found, t.canonical)
		}
	}
	return found
}

// exampleTexts are the examples that may be of use to who was refused by r.
func (e *Engine) exampleTexts(program string, r proposal.Reason) []string {
	var all []string
	for _, l := range e.layers {
		for _, d := range l.book.about(either(l.book.exemplifies(program), mentions(r.Rule))) {
			if d.point != module.PointCommand {
				continue
			}
			for _, text := range d.allowedExamples() {
				fits := d.is(r.Rule) || facts.HoldsWord(text, program) && !strings.ContainsAny(text, "$`~<>|&;*?\n")
				if fits && len(text) <= proposal.MaxAlternative && !slices.Contains(all, text) {
					all = append(all, text)
				}
			}
		}
	}
	return all
}

// allowedExamples are those of d's examples that are likely to be allowed.
func (d definition) allowedExamples() []string {
	if d.set != "allow" {
		return d.notMatch
	}
	if d.layer.may(Allows) {
		return d.match
	}
	return nil
}

func either(a, b func(File) bool) func(File) bool {
	return func(f File) bool { return a(f) || b(f) }
}

// likeness counts the words that two commands share, of which the first count most,
// and prefers the verbs that a suggestion names.
func likeness(a, b, suggestion string) int {
	theirs, n := strings.Fields(b), 0
	if words := strings.Fields(a); len(words) > 1 && facts.HoldsWord(suggestion, words[1]) {
		n += 2
	}
	for i, w := range strings.Fields(a) {
		if i < len(theirs) && theirs[i] == w {
			n += 3
		} else if slices.Contains(theirs, w) {
			n++
		}
	}
	return n
}
