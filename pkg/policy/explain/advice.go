// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds on what is tried for one proposal: a hostile plan has two hundred of them, and
// what is tried must not depend on how fast the machine is.
const (
	maxTried    = 12 // decisions about changes of the text
	maxExamples = 8  // decisions about examples, of one reason
	maxParts    = 4  // commands of a text that is changed
	maxKnown    = 4096
	maxAdvised  = 6 // reasons
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
	engine  *policy.Engine
	analyse func(proposal.Proposal) proposal.Analysis
	books   []*book // by layer

	mu    sync.Mutex
	known map[string]tried

	compiling sync.Mutex
	compiled  map[layerPoint]*policy.Conditions
}

// A layerPoint is a layer, by its place among the engine's, at a decision point.
type layerPoint struct {
	layer int
	point string
}

// A tried is what became of one text.
type tried struct {
	canonical string
	program   string // of its first command
	against   int    // reasons that are heeded
	allowed   bool
}

// NewAdviser makes an Adviser for what e decides, which analyse reads.
func NewAdviser(e *policy.Engine, analyse func(proposal.Proposal) proposal.Analysis) *Adviser {
	v := &Adviser{engine: e, analyse: analyse, known: map[string]tried{}, compiled: map[layerPoint]*policy.Conditions{}}
	for _, l := range e.Layers() {
		v.books = append(v.books, newBook(l))
	}
	return v
}

// Advise returns d with Alternatives: the nearest change of the proposal itself that is
// allowed or, where there is none, for each command the nearest example of another use of
// its program. Code that is not shell gets none: no example is similar to it.
func (v *Adviser) Advise(ctx context.Context, p proposal.Proposal, a proposal.Analysis, d proposal.Decision) proposal.Decision {
	if d.Effect == proposal.Allow || len(a.Snippets) > 0 || facts.OwnText(p, a) == "" {
		return d
	}
	d.Reasons = slices.Clone(d.Reasons)
	reasons := heeded(d.Reasons)
	if len(reasons) == 0 {
		return d
	}
	if text := v.variation(ctx, p, a); text != "" {
		reasons[0].Alternatives = []string{text}
		return d
	}
	advised, shown := map[int]bool{}, map[string]bool{strings.TrimSpace(a.Canonical): true}
	for _, r := range reasons[:min(len(reasons), maxAdvised)] {
		if advised[r.Command] {
			continue
		}
		if text := v.example(ctx, a, *r); text != "" && !shown[text] {
			advised[r.Command], shown[text] = true, true
			r.Alternatives = []string{text}
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
		t = tried{canonical: oneLine(a.Canonical, text), program: programIn(a), against: len(heeded(d.Reasons))}
		t.allowed = d.Effect == proposal.Allow && t.canonical != "" && len(t.canonical) <= proposal.MaxAlternative
	} else {
		t = tried{against: 1 << 20}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) < maxKnown {
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

// heeded are those of reasons that count: the others are only observed.
func heeded(reasons []proposal.Reason) []*proposal.Reason {
	var all []*proposal.Reason
	for i := range reasons {
		if !reasons[i].Observed {
			all = append(all, &reasons[i])
		}
	}
	return all
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

// example is the command nearest to the one that r is about, of the
// examples in METADATA. It has words in common with it beside the program, or r suggests
// it; another program is r's own suggestion. It is "" where there is none.
func (v *Adviser) example(ctx context.Context, a proposal.Analysis, r proposal.Reason) string {
	if r.Command < 0 || r.Command >= len(a.Commands) {
		return ""
	}
	c := a.Commands[r.Command]
	program, words := facts.ToolName(path.Base(c.Program)), c.Argv()
	if program == "." || len(words) == 0 {
		return ""
	}
	texts := v.exampleTexts(program, r.Rule)
	like := func(text string) int { return likeness(strings.Fields(text), words, r.Suggestion) }
	texts = slices.DeleteFunc(texts, func(text string) bool { return like(text) == 0 })
	slices.SortStableFunc(texts, func(x, y string) int {
		return cmp.Or(cmp.Compare(like(y), like(x)), cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	})
	for _, text := range texts[:min(len(texts), maxExamples)] {
		if t := v.try(ctx, text); t.allowed && (t.program == program || r.Layer != policy.LayerFloor && facts.HoldsWord(r.Suggestion, t.program)) {
			return t.canonical
		}
	}
	return ""
}

// exampleTexts are the examples that are likely to be allowed and name program, or are
// given by the rule that refused it.
func (v *Adviser) exampleTexts(program, rule string) []string {
	var all []string
	for _, b := range v.books {
		for _, d := range b.about(func(f policy.File) bool { return b.exemplifies(f, program) || bytes.Contains(f.Content, []byte(rule)) }) {
			if d.point != module.PointCommand {
				continue
			}
			for _, text := range d.allowed() {
				fits := d.is(rule) || facts.HoldsWord(text, program) && !strings.ContainsAny(text, "$`~<>|&;*?\n")
				if fits && len(text) <= proposal.MaxAlternative && !slices.Contains(all, text) {
					all = append(all, text)
				}
			}
		}
	}
	return all
}

// allowed are those of d's examples that are likely to be allowed.
func (d definition) allowed() []string {
	switch {
	case d.set != "allow":
		return d.notMatch
	case d.layer.Role >= policy.Allows:
		return d.match
	}
	return nil
}

// likeness counts the words behind the program that two commands share, of which those
// in the same place count most, and whether the suggestion names the first.
func likeness(a, b []string, suggestion string) int {
	n := 0
	if len(a) > 1 && facts.HoldsWord(suggestion, a[0]+" "+a[1]) {
		n += 2
	}
	for i, w := range a {
		switch {
		case i == 0:
		case i < len(b) && b[i] == w:
			n += 3
		case slices.Contains(b[1:], w):
			n++
		}
	}
	return n
}
