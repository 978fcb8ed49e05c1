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

// Bounds of the attempts for one proposal: a hostile plan has two hundred proposals, and
// the result must not depend on the speed of the machine.
const (
	maxTried    = 12 // decisions about changes of the text
	maxExamples = 8  // decisions about examples, of one reason
	maxParts    = 4  // commands of a text that is changed
	maxKnown    = 4096
	maxAdvised  = 6 // reasons
)

// An Adviser finds alternatives that would be allowed instead of what was denied. It is
// safe for concurrent use.
//
// It promises that the Engine allows each alternative when it is proposed alone, as run:
// each was decided like any proposal. It changes only the Alternatives in the Reasons of a
// Decision. The same input has the same result, so that deciding again gives the same.
//
// It does not promise that an alternative does what was intended.
type Adviser struct {
	engine  *policy.Engine
	analyze func(proposal.Proposal) proposal.Analysis
	indexes []*ruleIndex // by layer

	mu    sync.Mutex
	known map[string]tried

	compiling sync.Mutex
	compiled  map[layerPoint]*policy.Conditions
}

// A layerPoint is a layer, by its index in the engine's layers, at a decision point.
type layerPoint struct {
	layer int
	point string
}

// A tried is the decision about one text.
type tried struct {
	canonical string
	program   string // of its first command
	against   int    // reasons that count
	allowed   bool
}

// NewAdviser returns an Adviser for e's decisions. analyze reads proposals.
func NewAdviser(e *policy.Engine, analyze func(proposal.Proposal) proposal.Analysis) *Adviser {
	v := &Adviser{engine: e, analyze: analyze, known: map[string]tried{}, compiled: map[layerPoint]*policy.Conditions{}}
	for _, l := range e.Layers() {
		v.indexes = append(v.indexes, newRuleIndex(l))
	}
	return v
}

// Advise returns d with Alternatives: the nearest change of the proposal that is allowed
// or, if there is none, for each command the nearest example of another use of its
// program. Code that is not shell gets none: no example is similar to it.
func (v *Adviser) Advise(ctx context.Context, p proposal.Proposal, a proposal.Analysis, d proposal.Decision) proposal.Decision {
	if d.Effect == proposal.Allow || p.Earlier != nil || len(a.Snippets) > 0 || facts.OwnText(p, a) == "" {
		return d
	}
	d.Reasons = slices.Clone(d.Reasons)
	reasons := effective(d.Reasons)
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

// try decides text alone.
func (v *Adviser) try(ctx context.Context, text string) tried {
	v.mu.Lock()
	t, there := v.known[text]
	v.mu.Unlock()
	if there || ctx.Err() != nil || len(text) > proposal.MaxAlternative {
		return t
	}
	p := proposal.Proposal{ID: "alternative", Run: text}
	a := v.analyze(p)
	d, err := v.engine.Decide(ctx, p, a)
	if err == nil {
		t = tried{canonical: oneLine(a.Canonical, text), program: programIn(a), against: len(effective(d.Reasons))}
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

// oneLine is the canonical text, which was decided, too, or else the text that was tried:
// an alternative is shown in one line. It is "" if neither is a single line.
func oneLine(canonical, text string) string {
	for _, s := range []string{canonical, text} {
		if s = strings.TrimSpace(s); !strings.Contains(s, "\n") {
			return s
		}
	}
	return ""
}

// effective are the reasons that count, without those that are only observed.
func effective(reasons []proposal.Reason) []*proposal.Reason {
	var all []*proposal.Reason
	for i := range reasons {
		if !reasons[i].Observed {
			all = append(all, &reasons[i])
		}
	}
	return all
}

// programIn is the tool name of a's first program.
func programIn(a proposal.Analysis) string {
	for _, c := range a.Commands {
		if c.Program != "" {
			return facts.ToolName(path.Base(c.Program))
		}
	}
	return ""
}

// example is the example in METADATA that is nearest to the command that r is about. It
// shares words besides the program with it, or r suggests it; it has another program only
// if r suggests that program. It is "" if there is none.
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

// exampleTexts are the examples that are likely to be allowed and name program, or belong
// to the rule that denied it.
func (v *Adviser) exampleTexts(program, rule string) []string {
	var all []string
	for _, b := range v.indexes {
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

// allowed are d's examples that are likely to be allowed.
func (d definition) allowed() []string {
	switch {
	case d.set != "allow":
		return d.notMatch
	case d.layer.Role >= policy.Allows:
		return d.match
	}
	return nil
}

// likeness counts the words after the program that two commands share, and whether the
// suggestion names the first. Words at the same position count most.
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
