// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkPlan checks proposals against each other and their fields against each other,
// which a shape cannot express. It reports nothing that check already rejected.
func checkPlan(root *node, ps *problems) {
	proposals := root.Get("proposals")
	if proposals == nil || len(proposals.Items) > MaxProposals {
		return
	}
	defined, running := placesOf(proposals), -1
	for i, p := range proposals.Items {
		if ps.Full() {
			return
		}
		if p.Kind != object {
			continue
		}
		path := document.JoinIndex("proposals", i)
		checkForm(p, path, ps)
		checkID(p, i, path, defined, proposals, ps)
		checkNeeds(p, i, path, defined, ps)
		checkSandbox(p, path, ps)
		running = checkPhase(p, i, running, path, proposals, ps)
	}
}

// checkPhase allows no set-up step after a step that runs: the grants for set-up are
// withdrawn then. It returns the first proposal so far that runs, or -1.
func checkPhase(p *node, i, running int, path string, proposals *node, ps *problems) int {
	phase := p.Get("phase")
	switch {
	case phase == nil || phase.Value == proposal.PhaseRun:
		if running < 0 {
			return i
		}
	case phase.Kind == text && phase.Value == proposal.PhaseSetup && running >= 0:
		ps.Add(phase.At, document.JoinName(path, "phase"), "is setup, but proposals[%d] in line %d runs before it: move it before that one, or give that one the phase \"setup\" too",
			running, proposals.Items[running].At.Line)
	}
	return running
}

// placesOf maps each id to the first proposal that has it.
func placesOf(proposals *node) map[string]int {
	places := map[string]int{}
	for i, p := range proposals.Items {
		id := p.Get("id")
		if id == nil || id.Kind != text {
			continue
		}
		if _, taken := places[id.Value]; !taken {
			places[id.Value] = i
		}
	}
	return places
}

// checkForm requires exactly one of run, argv and code, and allows language only with code.
func checkForm(p *node, path string, ps *problems) {
	var given []string
	for _, form := range []string{"run", "argv", "code"} {
		if p.Get(form) != nil {
			given = append(given, form)
		}
	}
	switch {
	case len(given) == 0:
		ps.Add(p.At, path, "has nothing to run: give one of run (shell text), argv (a list of words) and code (with language)")
	case len(given) > 1:
		ps.Add(p.At, path, "has %s; exactly one of run, argv and code is allowed", strings.Join(given, " and "))
	}
	code, language := p.Get("code"), p.Get("language")
	switch {
	case code != nil && language == nil:
		ps.Add(p.At, path, `the field "language" is missing: code needs one of "python", "javascript", "bash" and "sh"`)
	case code == nil && language != nil:
		ps.Add(language.At, document.JoinName(path, "language"), "is allowed only with code: leave it out")
	}
}

// checkSandbox allows both names of a field only with the same value.
func checkSandbox(p *node, path string, ps *problems) {
	current, old := p.Get(fieldSandbox), p.Get(fieldFresh)
	if current != nil && old != nil && current.Kind == boolean && old.Kind == boolean && current.Value != old.Value {
		ps.Add(old.At, document.JoinName(path, fieldFresh), "contradicts %q in line %d: leave it out", fieldSandbox, current.At.Line)
	}
}

// warnDeprecated adds the first use of each deprecated field of a proposal.
func warnDeprecated(root *node, ps *problems) {
	replaced := map[string]string{}
	for _, f := range proposalShape.Fields {
		replaced[f.Name] = f.Replaced
	}
	for i, p := range root.Get("proposals").Items {
		for _, m := range p.Members {
			if to := replaced[m.Name]; to != "" {
				replaced[m.Name] = ""
				ps.Add(m.At, document.JoinName(document.JoinIndex("proposals", i), m.Name), "field %q is deprecated: use %q", m.Name, to)
			}
		}
	}
}

func checkID(p *node, i int, path string, defined map[string]int, proposals *node, ps *problems) {
	id := p.Get("id")
	if id == nil || id.Kind != text {
		return
	}
	if first := defined[id.Value]; first != i {
		ps.Add(id.At, document.JoinName(path, "id"), "the id %s is already used by proposals[%d] in line %d",
			document.Quote(id.Value), first, proposals.Items[first].Get("id").At.Line)
	}
}

// checkNeeds allows a proposal to need only earlier ones, so that the document's
// order is a valid execution order.
func checkNeeds(p *node, i int, path string, defined map[string]int, ps *problems) {
	needs := p.Get("needs")
	if needs == nil || needs.Kind != list || len(needs.Items) > document.MaxListed {
		return
	}
	for k, need := range needs.Items {
		if ps.Full() {
			return
		}
		if need.Kind != text {
			continue
		}
		path := document.JoinIndex(document.JoinName(path, "needs"), k)
		switch place, known := defined[need.Value]; {
		case need.Value == p.Text("id"):
			ps.Add(need.At, path, "a proposal cannot need itself")
		case !known:
			ps.Add(need.At, path, "no proposal has the id %s%s", document.Quote(need.Value), suggestID(need.Value, defined))
		case place > i:
			ps.Add(need.At, path, "%s comes later: move it before this proposal", document.Quote(need.Value))
		}
	}
}

func suggestID(name string, defined map[string]int) string {
	best, minimum := "", len(defined)
	for id, place := range defined {
		if near := document.Nearest(name, []string{id}); near != "" && place < minimum {
			best, minimum = near, place
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + document.Quote(best) + "?"
}
