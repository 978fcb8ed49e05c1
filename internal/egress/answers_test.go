// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// asked counts the questions that reach policy, by kind and command.
type asked struct {
	mu    sync.Mutex
	count map[string]int
}

func (a *asked) decide(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count[e.Command+" "+e.Kind]++
	return house(ctx, e)
}

// What was allowed is asked once in each command, requests and refusals each time; every connection
// has its records, and each has policy's answer.
func TestAnswersAreKeptForACommand(t *testing.T) {
	lanetest.SkipShort(t)
	a := &asked{count: map[string]int{}}
	w, g, r := open(t, func(o *Options) { o.Decide = a.decide })
	for _, command := range []string{"c1", "c2"} {
		for i := range 3 {
			for _, url := range []string{"https://allowed.example/x", "http://allowed.example/y"} {
				if got, err := get(g.client(w.pool, ""), url); err != nil {
					t.Fatalf("%s: %q, %v", url, got, err)
				}
			}
			if _, err := get(g.client(w.pool, ""), "https://evil.example/"); err == nil {
				t.Fatal("evil.example was reached")
			}
			r.wait((i + 1) * 6)
		}
		if err := g.End(); err != nil {
			t.Fatal(err)
		}
		checkRepeated(t, r)
		if command == "c1" {
			if err := g.Begin(t.Context(), "c2", granted); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string]int{}
	for _, command := range []string{"c1 ", "c2 "} {
		want[command+"lookup"], want[command+"connect"], want[command+"hello"], want[command+"request"] = 1+3, 2, 1, 3
	}
	if d := cmp.Diff(want, a.count); d != "" {
		t.Error(d)
	}
}

// checkRepeated checks that the events of three rounds are three times those of one, and forgets
// them.
func checkRepeated(t *testing.T, r *record) {
	t.Helper()
	var want []string
	for range 3 {
		want = append(want, "lookup allowed.example :0 allow", "connection allowed.example 9.9.9.9:443 allow sni=allowed.example", "lookup allowed.example :0 allow",
			"request allowed.example 9.9.9.9:80 allow GET /y 200", "connection allowed.example 9.9.9.9:80 allow", "lookup evil.example :0 deny (policy)")
	}
	got := r.lines()
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, e := range r.events {
		rules := []string{"test.yes"}
		if e.Flow.Decision.Effect != proposal.Allow {
			rules = []string{"test.no"}
		}
		if !slices.Equal(e.Flow.Decision.Rules, rules) {
			t.Errorf("%s has the rules %v", e.Kind, e.Flow.Decision.Rules)
		}
	}
	r.events = nil
}

// A question has every field of its Egress that is set: one that is new is asked about each time.
func TestQuestionHasEveryField(t *testing.T) {
	for _, kind := range []string{points.EgressLookup, points.EgressConnect, points.EgressHello} {
		plain, ok := questionOf(proposal.Egress{Kind: kind})
		if !ok {
			t.Fatalf("%s is asked about each time", kind)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[proposal.Egress]()) {
			e := proposal.Egress{Kind: kind}
			set(t, reflect.ValueOf(&e).Elem().FieldByIndex(f.Index))
			if q, ok := questionOf(e); ok && q == plain {
				t.Errorf("%s: %s makes no difference", kind, f.Name)
			}
		}
	}
	for _, kind := range []string{"", points.EgressRequest, points.EgressDatagram, "other"} {
		if _, ok := questionOf(proposal.Egress{Kind: kind}); ok {
			t.Errorf("an answer about %q is kept", kind)
		}
	}
}

// set sets a field to another value than it has.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	default:
		t.Fatalf("a field of kind %s: set it here", v.Kind())
	}
}

// The number of answers is bounded, refusals are not kept, and no two users share an answer.
func TestAnswersAreBounded(t *testing.T) {
	var a answerCache
	yes := proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"r"}, Reason: &proposal.Reason{Rule: "r"}}
	for i := range maxAnswers + 10 {
		a.storeAnswer(answerKey{name: fmt.Sprint(i)}, yes)
	}
	if len(a.kept) != maxAnswers {
		t.Errorf("%d answers are kept", len(a.kept))
	}
	yes.Rules[0], yes.Reason.Rule = "changed", "changed"
	d, ok := a.findAnswer(answerKey{name: "0"})
	if !ok || d.Rules[0] != "r" || d.Reason.Rule != "r" {
		t.Errorf("%+v", d)
	}
	for _, effect := range []proposal.Effect{proposal.Deny, proposal.Ask} {
		var a answerCache
		a.storeAnswer(answerKey{}, proposal.EgressDecision{Effect: effect})
		if _, ok := a.findAnswer(answerKey{}); ok {
			t.Errorf("%s is kept", effect)
		}
	}
}
