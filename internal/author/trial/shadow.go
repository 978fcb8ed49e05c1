// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/bounds"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of the search for shadows: of its processor time, of the generated inputs and of
// those of the corpus. implying is how often a denial must hold with another one before it is
// reported, and enough of how many inputs it must deny nearly all.
const (
	searching    = 1500 * time.Millisecond
	maxGenerated = 300
	maxCorpus    = 100
	implying     = 3
	enough       = 20
)

// An effectCounts counts the inputs in which a rule held.
type effectCounts struct {
	held, denied int
	with         []string // other rules that denied each time a denial or a question held, sorted
}

// noteAnswer records one decision of all layers, and the rules that held in it.
func (t *trial) noteAnswer(a answer) {
	t.inputs[a.point]++
	for at := range a.held {
		s := t.seen[at]
		if id := t.denies[at]; id != "" {
			s.with = commonIDs(s, a.denyingWith(id))
		}
		s.held++
		if a.effect == "deny" {
			s.denied++
		}
		t.seen[at] = s
	}
}

// commonIDs is what denied with a rule before and denies with it now.
func commonIDs(before effectCounts, now []string) []string {
	if before.held == 0 {
		return now
	}
	return slices.DeleteFunc(slices.Clone(before.with), func(id string) bool { return !slices.Contains(now, id) })
}

// denyingWith are the rules of policies that deny every command that the rule id denies or asks about.
func (a answer) denyingWith(id string) []string {
	by := map[int]map[string]bool{}
	for _, r := range a.reasons {
		if (r.Effect == proposal.Deny || r.Rule == id) && !r.Observed && r.Layer != policy.LayerFloor {
			if by[r.Command] == nil {
				by[r.Command] = map[string]bool{}
			}
			by[r.Command][r.Rule] = true
		}
	}
	var with map[string]bool
	for _, rules := range by {
		if !rules[id] {
			continue
		}
		if with == nil {
			with = maps.Clone(rules)
		}
		maps.DeleteFunc(with, func(rule string, _ bool) bool { return !rules[rule] })
	}
	delete(with, id)
	return slices.Sorted(maps.Keys(with))
}

// decideAndNote runs decide, and notes the rules that held if there is an answer.
func (t *trial) decideAndNote(decide func() (answer, error)) (answer, error) {
	held := map[module.Place]bool{}
	t.addListener(func(at module.Place) { held[at] = true })
	a, err := decide()
	t.addListener(nil)
	if a.held = held; err == nil {
		t.noteAnswer(a)
	}
	return a, err
}

// exploreInputs decides generated inputs and a part of the corpus, for shadows and malformed answers,
// until its time is over. It returns a failed test for each malformed answer. An input that
// cannot be decided is not counted; errors are for tests to find.
func (t *trial) exploreInputs(ctx context.Context, tried []policy.Layer) (failed []Result) {
	began := bounds.ProcessorTime()
	known := map[string]bool{}
	for _, in := range slices.Concat(generateInputs(tried), t.corpusInputs(tried)) {
		if ctx.Err() != nil || bounds.ProcessorTime()-began > searching {
			break
		}
		a, err := t.decideAndNote(func() (answer, error) {
			if text, ok := in.(string); ok {
				return t.decideProposal(ctx, proposal.Proposal{ID: "t", Run: text})
			}
			return t.judgeInput(ctx, in)
		})
		if one, ok := malformedResult(a, in); ok && err == nil && !known[one.Message] {
			known[one.Message] = true
			failed = append(failed, one)
		}
	}
	return failed
}

// malformedResult is the failed test of an input about which a rule answered something that is not valid.
func malformedResult(a answer, input any) (one Result, found bool) {
	i := slices.IndexFunc(a.reasons, func(r proposal.Reason) bool { return r.Rule == policy.RuleMalformed })
	if i < 0 {
		return one, false
	}
	r, subject := a.reasons[i], fmt.Sprint(input)
	if x, ok := input.(*proposal.Exec); ok {
		subject = strings.Join(x.Argv, " ")
	}
	return Result{Name: "generated: " + subject, Kind: KindGenerated, Layer: r.Layer, Status: Failed,
		Message: r.Message, Hint: r.Suggestion, Subject: subject}, true
}

// corpusInputs is a part of Options.Corpus, or of the shipped policy's examples, which are no news
// where it is tested itself.
func (t *trial) corpusInputs(tried []policy.Layer) (inputs []any) {
	texts := t.Corpus
	if len(texts) == 0 && !slices.ContainsFunc(tried,
		func(l policy.Layer) bool { return l.Name == policy.DefaultLayer }) {
		if l, err := policy.ShippedLayer(); err == nil {
			texts = exampleTexts(l)
		}
	}
	step := max(1, (len(texts)+maxCorpus-1)/maxCorpus)
	for i := 0; i < len(texts); i += step {
		inputs = append(inputs, texts[i])
	}
	return inputs
}

// findShadows are the rules of l that are not seen to have an effect, with what was seen. It
// proves nothing about other inputs.
func (t *trial) findShadows(l policy.Layer, rules []RuleReport) (all []Shadow) {
	at := func(r RuleReport) module.Place { return module.Place{Layer: l.Name, File: r.File, Row: r.Line} }
	with := map[string][]string{} // of the rules with an id so far
	for _, r := range rules {
		s, n := t.seen[at(r)], t.inputs[inputPoint(r.Point)]
		said := ""
		switch {
		case s.held == 0 && explored[r.Point] && n > 0:
			said = fmt.Sprintf("not seen to hold in %d inputs", n)
		case s.held > 0 && s.denied == s.held && r.Set == "allow":
			said = fmt.Sprintf("not seen to have an effect in %d inputs: it held in %d, all of them denied", n, s.held)
		case s.held*10 >= n*9 && n >= enough && r.Set == "deny":
			said = fmt.Sprintf("denies nearly everything: %d of %d inputs", s.held, n)
		case s.held >= implying:
			s.with = slices.DeleteFunc(slices.Clone(s.with),
				func(id string) bool { return slices.Contains(with[id], r.Rule) })
			if with[r.Rule] = append(with[r.Rule], s.with...); len(s.with) > 0 {
				said = fmt.Sprintf("not seen to decide in %d inputs: it held in %d, and each time %s denied, too", n,
					s.held, strings.Join(s.with[:min(3, len(s.with))], ", "))
			}
		}
		if said != "" {
			all = append(all, Shadow{r, said})
		}
	}
	return all
}

// inputPoint is what counts the inputs of a point: a proposal's are those of three points.
func inputPoint(point string) string {
	if slices.Contains([]string{module.PointCommand, module.PointProposal, module.PointSnippet}, point) {
		return module.PointProposal
	}
	return point
}
