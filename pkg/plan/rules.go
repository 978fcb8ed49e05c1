// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A checker checks the proposals of a plan one by one.
type checker struct {
	items []*node
	order []int            // indexes in items, as they run
	rank  []int            // by index: the place in order
	ids   []string         // by index: the id in the report
	with  map[string][]int // the proposals that give an id, in the order of items

	searches int // for ids that were meant
}

func newChecker(items []*node) *checker {
	c := &checker{items: items, order: orderOf(items), rank: make([]int, len(items)), with: map[string][]int{}}
	for place, i := range c.order {
		c.rank[i] = place
	}
	for i, p := range items {
		for _, id := range idsOf(p) {
			c.with[id] = append(c.with[id], i)
		}
	}
	for i := range items {
		c.ids = append(c.ids, c.nameOf(i))
	}
	return c
}

// orderOf returns the indexes of proposals as they run: set-up first.
func orderOf(items []*node) []int {
	var setup, rest []int
	for i, p := range items {
		if isSetup(p) {
			setup = append(setup, i)
		} else {
			rest = append(rest, i)
		}
	}
	return append(setup, rest...)
}

func isSetup(p *node) bool {
	phase := p.Get("phase")
	return phase != nil && phase.Kind == text && phase.Value == proposal.PhaseSetup
}

// idsOf returns the different ids that p gives: more than one if the field is repeated, in
// which case readers disagree about it.
func idsOf(p *node) (ids []string) {
	for _, m := range p.Members {
		if m.Name == "id" && m.Value.IsWord() && !slices.Contains(ids, m.Value.Value) {
			ids = append(ids, m.Value.Value)
		}
	}
	if m := idField.FindStringSubmatch(p.Value); p.Kind == document.Unreadable && len(p.Members) == 0 && m != nil {
		ids = append(ids, m[1]) // of an item that is not valid YAML
	}
	return ids
}

var (
	idShape   = document.ID("")
	idPattern = idShape.Pattern
	idField   = pattern.New(`(?:^|[\s{,])["']?id["']?:\s*["']?([A-Za-z0-9][A-Za-z0-9._-]{0,63})["']?(?:$|[\s,}])`)
)

// nameOf returns the id of proposal i in the report, which is valid and unique: its own if
// no earlier proposal has it, or a new one.
func (c *checker) nameOf(i int) string {
	if ids := idsOf(c.items[i]); len(ids) > 0 && c.with[ids[0]][0] == i {
		var ps problems
		if document.Check(&node{Kind: text, Value: ids[0]}, idShape, "", &ps); len(ps.List) == 0 {
			return ids[0]
		}
	}
	for n := i + 1; ; n += len(c.items) { // no other proposal tries the same
		if id := fmt.Sprintf("refused-%d", n); c.with[id] == nil {
			return id
		}
	}
}

// checkProposal returns the problems of proposal i, including those with other proposals.
func (c *checker) checkProposal(i int) *problems {
	ps, path := &problems{About: "plan"}, document.JoinIndex("proposals", i)
	document.Check(c.items[i], &proposalShape, path, ps)
	if p := c.pruneItem(i); p.Kind == object {
		if !slices.ContainsFunc(p.Members, func(m member) bool { return m.Value.Kind == document.Unreadable }) {
			checkForm(p, path, ps) // what cannot be read may be the form
		}
		c.checkID(i, path, "proposals", ps)
		c.checkNeeds(i, path, ps)
	}
	return ps
}

func (c *checker) pruneItem(i int) *node { return document.PruneBlank(c.items[i], &proposalShape) }

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

// warnMoved adds the set-up proposals that do not run in document order.
func warnMoved(items []*node, ps *problems) {
	running := slices.IndexFunc(items, func(p *node) bool { return !isSetup(p) })
	for i, p := range items {
		if isSetup(p) && running >= 0 && running < i {
			ps.Add(p.Get("phase").At, document.JoinName(document.JoinIndex("proposals", i), "phase"),
				"is setup: it runs before proposals[%d] in line %d", running, items[running].At.Line)
		}
	}
}

// checkID refuses all items of the list that share an id: needs and the report could mean each.
func (c *checker) checkID(i int, path, list string, ps *problems) {
	for _, m := range c.items[i].Members {
		if m.Name != "id" || !m.Value.IsWord() {
			continue
		}
		for _, other := range c.with[m.Value.Value] {
			if other != i {
				ps.Add(m.Value.At, document.JoinName(path, "id"), "the id %s is also that of %s[%d] in line %d",
					document.Quote(m.Value.Value), list, other, c.items[other].At.Line)
				break
			}
		}
	}
}

// checkNeeds allows a proposal to need only those that run before it.
func (c *checker) checkNeeds(i int, path string, ps *problems) {
	needs := c.items[i].Get("needs")
	path = document.JoinName(path, "needs")
	switch {
	case needs == nil || len(needs.Items) > document.MaxListed:
	case needs.IsWord() && idPattern.MatchString(needs.Value):
		c.checkNeed(i, needs, path, ps)
	case needs.Kind == list:
		for k, need := range needs.Items {
			c.checkNeed(i, need, document.JoinIndex(path, k), ps)
		}
	}
}

func (c *checker) checkNeed(i int, need *node, path string, ps *problems) {
	if !need.IsWord() {
		return
	}
	if why := c.cannotNeed(i, need.Value); why != "" {
		if c.with[need.Value] == nil {
			why += c.suggestID(need.Value)
		}
		ps.Add(need.At, path, "%s", why)
	}
}

// cannotNeed returns why proposal i cannot need the proposal called id, or "".
func (c *checker) cannotNeed(i int, id string) string {
	places := c.with[id]
	switch {
	case slices.Contains(places, i):
		return "a proposal cannot need itself"
	case len(places) == 0:
		return "no proposal has the id " + document.Quote(id)
	case c.rank[places[0]] < c.rank[i]:
		return ""
	case places[0] < i:
		return document.Quote(id) + " runs later, because set-up runs first: give it the phase \"setup\" too"
	}
	return document.Quote(id) + " comes later: move it before this proposal"
}

// suggestID searches in document order, so that a plan always has the same problems, and
// only MaxProblems times, because a search takes time.
func (c *checker) suggestID(name string) string {
	if c.searches++; c.searches > maxProblems {
		return ""
	}
	for _, p := range c.items {
		if near := document.NearestName(name, idsOf(p)); near != "" {
			return ": did you mean " + document.Quote(near) + "?"
		}
	}
	return ""
}
