// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of the attempts for one proposal: a hostile plan has two hundred proposals, and
// the result must not depend on the speed of the machine.
const (
	maxTried    = 12 // decisions about changes of the text
	maxExamples = 8  // decisions about examples, of one rule
	maxParts    = 4  // commands of a text that is changed
	maxKnown    = 4096
)

// An Adviser finds alternatives that would be allowed instead of what was denied. It is
// safe for concurrent use.
//
// It promises that the Engine allows each alternative when it is proposed alone, as run:
// each was decided like any proposal. An alternative does what was proposed: it has every
// operand and option of it, and lacks only what has no effect in a sandbox, such as sudo. It
// changes only the Alternatives in the Reasons of a Decision. The same input has the same
// result, so that deciding again gives the same.
type Adviser struct {
	engine  *policy.Engine
	analyze func(proposal.Proposal) proposal.Analysis
	indexes []*ruleIndex // by layer

	mu    sync.Mutex
	known map[string]textDecision

	compiling sync.Mutex
	compiled  map[layerPoint]*policy.Conditions
}

// A layerPoint is a layer, by its index in the engine's layers, at a decision point.
type layerPoint struct {
	layer int
	point string
}

// A textDecision is the decision about one text.
type textDecision struct {
	canonical string
	program   string // of its first command
	against   int    // reasons that count
	allowed   bool
}

// NewAdviser returns an Adviser for e's decisions. analyze reads proposals.
func NewAdviser(e *policy.Engine, analyze func(proposal.Proposal) proposal.Analysis) *Adviser {
	v := &Adviser{engine: e, analyze: analyze, known: map[string]textDecision{},
		compiled: map[layerPoint]*policy.Conditions{}}
	for _, l := range e.Layers() {
		v.indexes = append(v.indexes, newRuleIndex(l))
	}
	return v
}

// AdviseReasons returns the reasons of d with Alternatives: the nearest change of the proposal's
// form that is allowed, if there is one. Code that is not shell gets none.
func (v *Adviser) AdviseReasons(
	ctx context.Context, p proposal.Proposal, a proposal.Analysis, d proposal.Decision,
) []proposal.Reason {
	if d.Effect == proposal.Allow || p.Earlier != nil || len(a.Snippets) > 0 || facts.OwnText(p, a) == "" {
		return d.Reasons
	}
	advised := slices.Clone(d.Reasons)
	reasons := effectiveReasons(advised)
	if len(reasons) == 0 {
		return d.Reasons
	}
	if text := v.nearestVariation(ctx, p, a); text != "" {
		reasons[0].Alternatives = []string{text}
	}
	return advised
}

// tryText decides text alone.
func (v *Adviser) tryText(ctx context.Context, text string) textDecision {
	v.mu.Lock()
	t, there := v.known[text]
	v.mu.Unlock()
	if there || ctx.Err() != nil || len(text) > valid.MaxAlternative {
		return t
	}
	p := proposal.Proposal{ID: "alternative", Run: text}
	a := v.analyze(p)
	d, err := v.engine.Decide(ctx, p, a)
	if err == nil {
		t = textDecision{canonical: oneLine(a.Canonical, text), program: programIn(a),
			against: len(effectiveReasons(d.Reasons))}
		t.allowed = d.Effect == proposal.Allow && t.canonical != "" && len(t.canonical) <= valid.MaxAlternative
	} else {
		t = textDecision{against: 1 << 20}
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

// effectiveReasons are the reasons that count, without those that are only observed.
func effectiveReasons(reasons []proposal.Reason) []*proposal.Reason {
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
