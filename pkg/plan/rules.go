// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// checkPlan checks proposals against each other and their fields against each other,
// which a shape cannot express. It reports nothing that check already rejected.
func checkPlan(root *node, ps *problems) {
	proposals := root.get("proposals")
	if proposals == nil || len(proposals.items) > MaxProposals {
		return
	}
	defined, running := placesOf(proposals), -1
	for i, p := range proposals.items {
		if ps.full() {
			return
		}
		if p.kind != object {
			continue
		}
		path := joinIndex("proposals", i)
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
	phase := p.get("phase")
	switch {
	case phase == nil || phase.value == proposal.PhaseRun:
		if running < 0 {
			return i
		}
	case phase.kind == text && phase.value == proposal.PhaseSetup && running >= 0:
		ps.add(phase.at, joinName(path, "phase"), "is setup, but proposals[%d] in line %d runs before it: move it before that one, or give that one the phase \"setup\" too",
			running, proposals.items[running].at.line)
	}
	return running
}

// placesOf maps each id to the first proposal that has it.
func placesOf(proposals *node) map[string]int {
	places := map[string]int{}
	for i, p := range proposals.items {
		id := p.get("id")
		if id == nil || id.kind != text {
			continue
		}
		if _, taken := places[id.value]; !taken {
			places[id.value] = i
		}
	}
	return places
}

// checkForm requires exactly one of run, argv and code, and allows language only with code.
func checkForm(p *node, path string, ps *problems) {
	var given []string
	for _, form := range []string{"run", "argv", "code"} {
		if p.get(form) != nil {
			given = append(given, form)
		}
	}
	switch {
	case len(given) == 0:
		ps.add(p.at, path, "has nothing to run: give one of run (shell text), argv (a list of words) and code (with language)")
	case len(given) > 1:
		ps.add(p.at, path, "has %s; exactly one of run, argv and code is allowed", strings.Join(given, " and "))
	}
	code, language := p.get("code"), p.get("language")
	switch {
	case code != nil && language == nil:
		ps.add(p.at, path, `the field "language" is missing: code needs one of "python", "javascript", "bash" and "sh"`)
	case code == nil && language != nil:
		ps.add(language.at, joinName(path, "language"), "is allowed only with code: leave it out")
	}
}

// checkSandbox allows both names of a field only with the same value.
func checkSandbox(p *node, path string, ps *problems) {
	current, old := p.get(fieldSandbox), p.get(fieldFresh)
	if current != nil && old != nil && current.kind == boolean && old.kind == boolean && current.value != old.value {
		ps.add(old.at, joinName(path, fieldFresh), "contradicts %q in line %d: leave it out", fieldSandbox, current.at.line)
	}
}

// warnDeprecated adds the first use of each deprecated field of a proposal.
func warnDeprecated(root *node, ps *problems) {
	warned := map[string]bool{}
	for i, p := range root.get("proposals").items {
		for _, m := range p.members {
			if to := replaced[m.name]; to != "" && !warned[m.name] {
				warned[m.name] = true
				ps.add(m.at, joinName(joinIndex("proposals", i), m.name), "field %q is deprecated: use %q", m.name, to)
			}
		}
	}
}

func checkID(p *node, i int, path string, defined map[string]int, proposals *node, ps *problems) {
	id := p.get("id")
	if id == nil || id.kind != text {
		return
	}
	if first := defined[id.value]; first != i {
		ps.add(id.at, joinName(path, "id"), "the id %s is already used by proposals[%d] in line %d",
			quote(id.value), first, proposals.items[first].get("id").at.line)
	}
}

// checkNeeds allows a proposal to need only earlier ones, so that the document's
// order is a valid execution order.
func checkNeeds(p *node, i int, path string, defined map[string]int, ps *problems) {
	needs := p.get("needs")
	if needs == nil || needs.kind != list || len(needs.items) > maxListed {
		return
	}
	for k, need := range needs.items {
		if ps.full() {
			return
		}
		if need.kind != text {
			continue
		}
		path := joinIndex(joinName(path, "needs"), k)
		switch place, known := defined[need.value]; {
		case need.value == p.text("id"):
			ps.add(need.at, path, "a proposal cannot need itself")
		case !known:
			ps.add(need.at, path, "no proposal has the id %s%s", quote(need.value), suggestID(need.value, defined))
		case place > i:
			ps.add(need.at, path, "%s comes later: move it before this proposal", quote(need.value))
		}
	}
}

func suggestID(name string, defined map[string]int) string {
	best, minimum := "", len(defined)
	for id, place := range defined {
		if near := nearest(name, []string{id}); near != "" && place < minimum {
			best, minimum = near, place
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + quote(best) + "?"
}
