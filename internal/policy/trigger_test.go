// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// usual is what the shipped policy allows: someone with write permission runs a
// plan on another's pull request.
func usual() points.Trigger {
	return points.Trigger{
		Command: "run", Event: "issue_comment",
		Actor: points.Actor{Login: "mona", ID: 9, Type: "User", Permission: "write"},
		PR:    points.TriggerPR{Number: 7, State: "open", Head: "0123456789abcdef0123456789abcdef01234567"},
		Runs:  points.TriggerRuns{PR: 1, Day: 3, MaxPR: 20, MaxDay: 100},
	}
}

func trigger(t testing.TB, e *policy.Engine, in points.Trigger) proposal.Decision {
	t.Helper()
	d, err := e.Trigger(t.Context(), in)
	if err != nil {
		t.Fatalf("cannot decide %+v: %v", in, err)
	}
	return d
}

// TestTriggerMatrix holds who may do what, whatever the rules are called.
func TestTriggerMatrix(t *testing.T) {
	e := shipped(t)
	all := []string{"run", "rerun", "review", "approve", "explain", "help"}
	ask := []string{"explain", "help"}
	for name, c := range map[string]struct {
		change func(*points.Trigger)
		may    []string
	}{
		"writer":            {func(*points.Trigger) {}, all},
		"maintainer":        {func(t *points.Trigger) { t.Actor.Permission = "maintain" }, all},
		"admin":             {func(t *points.Trigger) { t.Actor.Permission = "admin" }, all},
		"triager":           {func(t *points.Trigger) { t.Actor.Permission = "triage" }, ask},
		"reader":            {func(t *points.Trigger) { t.Actor.Permission = "read" }, nil},
		"stranger":          {func(t *points.Trigger) { t.Actor.Permission = "none" }, nil},
		"author":            {func(t *points.Trigger) { t.Actor.Permission, t.Actor.Author = "read", true }, ask},
		"author of a fork":  {func(t *points.Trigger) { t.Actor.Permission, t.Actor.Author, t.PR.Fork = "none", true, true }, ask},
		"author who writes": {func(t *points.Trigger) { t.Actor.Author = true }, []string{"run", "rerun", "review", "explain", "help"}},
		"author who is all": {func(t *points.Trigger) { t.Actor.Permission, t.Actor.Author = "admin", true }, []string{"run", "rerun", "review", "explain", "help"}},
		"writer on a fork":  {func(t *points.Trigger) { t.PR.Fork = true }, all},
		"triager on a fork": {func(t *points.Trigger) { t.PR.Fork, t.Actor.Permission = true, "triage" }, ask},
		"unknown role":      {func(t *points.Trigger) { t.Actor.Permission = "" }, nil},
		"custom role":       {func(t *points.Trigger) { t.Actor.Permission = "security engineer" }, nil},
		"no id":             {func(t *points.Trigger) { t.Actor.ID = 0 }, nil},
		"no type":           {func(t *points.Trigger) { t.Actor.Type = "" }, nil},
		"organisation":      {func(t *points.Trigger) { t.Actor.Type = "Organization" }, nil},
		"bot":               {func(t *points.Trigger) { t.Actor.Type = "Bot" }, nil},
		"bot with all":      {func(t *points.Trigger) { t.Actor.Type, t.Actor.Permission = "Bot", "admin" }, nil},
		"listed bot":        {func(t *points.Trigger) { t.Actor.Type, t.Actor.Permission, t.Bots = "Bot", "none", []int64{1, 9} }, []string{"run"}},
		"listed bot, all":   {func(t *points.Trigger) { t.Actor.Type, t.Actor.Permission, t.Bots = "Bot", "admin", []int64{9} }, []string{"run"}},
		"listed, as a user": {func(t *points.Trigger) { t.Actor.Permission, t.Bots = "admin", []int64{9} }, []string{"run"}},
		"listed on a fork": {func(t *points.Trigger) {
			t.Actor.Type, t.PR.Fork, t.Bots = "Bot", true, []int64{9}
			t.Actor.Permission = "none"
		}, nil},
		"another's name":     {func(t *points.Trigger) { t.Actor.Type, t.Actor.Login, t.Bots = "Bot", "claude[bot]", []int64{1} }, nil},
		"bot that authored":  {func(t *points.Trigger) { t.Actor.Type, t.Actor.Author = "Bot", true }, nil},
		"closed":             {func(t *points.Trigger) { t.PR.State = "closed" }, ask},
		"no state":           {func(t *points.Trigger) { t.PR.State = "" }, ask},
		"locked":             {func(t *points.Trigger) { t.PR.Locked = true }, ask},
		"draft":              {func(t *points.Trigger) { t.PR.Draft = true }, all},
		"no head":            {func(t *points.Trigger) { t.PR.Head = "" }, ask},
		"spent":              {func(t *points.Trigger) { t.Runs.PR = 20 }, ask},
		"spent today":        {func(t *points.Trigger) { t.Runs.Day = 100 }, ask},
		"no budget":          {func(t *points.Trigger) { t.Runs = points.TriggerRuns{} }, ask},
		"nothing known":      {func(t *points.Trigger) { *t = points.Trigger{} }, nil},
		"closed for authors": {func(t *points.Trigger) { t.PR.State, t.Actor.Author, t.Actor.Permission = "closed", true, "read" }, ask},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range append(all, "", "merge") {
				in := usual()
				c.change(&in)
				in.Command = command
				want := proposal.Deny
				if slices.Contains(c.may, command) {
					want = proposal.Allow
				}
				d := trigger(t, e, in)
				if d.Effect != want || d.Effect == proposal.Deny && len(d.Reasons) == 0 || d.Grant != nil {
					t.Errorf("%q: %v by %v, want %v", command, d.Effect, d.Rules, want)
				}
			}
		})
	}
}

// TestTriggerLayers holds that further layers deny and never allow, that an ask is a
// no, and that a policy which is silent about triggers starts nothing.
func TestTriggerLayers(t *testing.T) {
	const head = "package fumehood.trigger\n\n"
	denied := with(t, folder(t, "a.rego", head+`deny contains {"rule": "mine.draft", "message": "m", "suggestion": "s"} if input.pr.draft

ask contains {"rule": "mine.fork", "message": "m", "suggestion": "s"} if input.pr.fork

allow contains {"rule": "mine.all"}
`))
	for name, c := range map[string]struct {
		change func(*points.Trigger)
		want   proposal.Effect
		rule   string
	}{
		"usual": {func(*points.Trigger) {}, proposal.Allow, "trigger.writer"},
		"deny":  {func(t *points.Trigger) { t.PR.Draft = true }, proposal.Deny, "mine.draft"},
		"ask":   {func(t *points.Trigger) { t.PR.Fork = true }, proposal.Deny, "mine.fork"},
		"allow": {func(t *points.Trigger) { t.Actor.Permission = "read" }, proposal.Deny, "trigger.permission"},
	} {
		in := usual()
		c.change(&in)
		if d := trigger(t, denied, in); d.Effect != c.want || !slices.Contains(d.Rules, c.rule) {
			t.Errorf("%s: %v by %v, want %v by %s", name, d.Effect, d.Rules, c.want, c.rule)
		}
	}

	silent := folder(t, "a.rego", "package fumehood.command\n\nallow contains {\"rule\": \"org.ls\"} if input.command.program == \"ls\"\n")
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Grants, silent)})
	if err != nil {
		t.Fatal(err)
	}
	if d := trigger(t, e, usual()); d.Effect != proposal.Deny || !slices.Contains(d.Rules, "trigger.no-rule") || len(d.Reasons) != 1 {
		t.Errorf("a silent policy: %+v", d)
	}
}

func TestTriggerFailsClosed(t *testing.T) {
	lanetest.SkipShort(t)
	const head = "package fumehood.trigger\n\ndeny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if "
	for name, c := range map[string]struct{ rego, code string }{
		"bomb":          {head + "count([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); some c in numbers.range(1, 3000); a + b == c]) == 1", "policy.deadline"},
		"builtin error": {head + "to_number(input.actor.login) > 3", "policy.eval"},
		"unknown key":   {"package fumehood.trigger\n\nallow contains {\"rule\": \"x.y\", \"why\": \"m\"} if true", "policy.malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := hurried(t, folder(t, "a.rego", c.rego)).Trigger(t.Context(), usual())
			if failure(err, d.Rules) != c.code || d.Effect != proposal.Deny {
				t.Errorf("got %+v, %v; want %s", d, err, c.code)
			}
		})
	}
	for name, rego := range map[string]string{
		"field":       head + "input.actor.association == \"MEMBER\"",
		"command":     head + "input.command.program == \"go\"",
		"type":        head + "input.runs.pr == \"3\"",
		"no such set": "package fumehood.trigger\n\nlimits contains {\"wall_ms\": 3} if true",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "a.rego", rego))}); err == nil {
				t.Error("the policy compiles")
			}
		})
	}
}
