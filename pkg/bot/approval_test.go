// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/bot"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	planDigest   = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	policyDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	other        = "ffffffffffffffffffffffffffffffffffffffff"
)

func TestMatch(t *testing.T) {
	long := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		prefix, head string
		want         bool
	}{
		"whole":         {sha, sha, true},
		"twelve":        {sha[:12], sha, true},
		"SHA-256":       {long[:20], long, true},
		"eleven":        {sha[:11], sha, false},
		"nothing":       {"", sha, false},
		"another":       {other, sha, false},
		"no head":       {sha, "", false},
		"both empty":    {"", "", false},
		"a short head":  {sha[:12], sha[:12], false},
		"a longer one":  {sha + "00", sha, false},
		"capitals":      {"ABCDEFABCDEF", "abcdefabcdef" + sha[:28], false},
		"head capitals": {sha[:12], strings.ToUpper(sha), false},
		"the middle":    {sha[4:20], sha, false},
		"a pattern":     {"............", sha, false},
	} {
		if got := bot.Match(c.prefix, c.head); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func question() bot.Asked {
	return bot.Asked{HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest, Since: noon}
}

func voice() bot.Approver {
	return bot.Approver{Login: "mona", ID: 9, URL: "https://github.example/x/1", Created: noon.Add(time.Minute)}
}

func TestApprove(t *testing.T) {
	command, _, p := bot.Read("/fumehood approve " + sha[:12])
	if p != nil {
		t.Fatal(p)
	}
	got, p := bot.Approve(question(), command, voice(), sha)
	want := proposal.Approval{By: "mona", ByID: 9, URL: "https://github.example/x/1", Time: noon.Add(time.Minute),
		HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest}
	if diff := cmp.Diff(want, got); diff != "" || p != nil {
		t.Fatalf("%+v %s", p, diff)
	}
	if !got.Covers(proposal.Run{HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest}) {
		t.Error("the approval does not cover what was asked")
	}
}

func TestApproveRefuses(t *testing.T) {
	approve := bot.Command{Name: "approve", SHA: sha}
	for name, c := range map[string]struct {
		change func(*bot.Asked, *bot.Command, *bot.Approver, *string)
		says   string
	}{
		"another command":   {func(_ *bot.Asked, c *bot.Command, _ *bot.Approver, _ *string) { c.Name = "run" }, "not an approval"},
		"nothing asked":     {func(a *bot.Asked, _ *bot.Command, _ *bot.Approver, _ *string) { *a = bot.Asked{} }, "nothing is waiting"},
		"no plan asked":     {func(a *bot.Asked, _ *bot.Command, _ *bot.Approver, _ *string) { a.PlanDigest = "" }, "nothing is waiting"},
		"no policy asked":   {func(a *bot.Asked, _ *bot.Command, _ *bot.Approver, _ *string) { a.Policy = "" }, "nothing is waiting"},
		"no time":           {func(a *bot.Asked, _ *bot.Command, _ *bot.Approver, _ *string) { a.Since = time.Time{} }, "nothing is waiting"},
		"an older commit":   {func(_ *bot.Asked, c *bot.Command, _ *bot.Approver, _ *string) { c.SHA = other }, "another commit: 0123456789ab"},
		"a push":            {func(_ *bot.Asked, _ *bot.Command, _ *bot.Approver, head *string) { *head = other }, "newer commit: ffffffffffff"},
		"a push named":      {func(_ *bot.Asked, c *bot.Command, _ *bot.Approver, head *string) { c.SHA, *head = other, other }, "another commit"},
		"no head":           {func(_ *bot.Asked, _ *bot.Command, _ *bot.Approver, head *string) { *head = "" }, "newer commit"},
		"no person":         {func(_ *bot.Asked, _ *bot.Command, v *bot.Approver, _ *string) { v.ID = 0 }, "the author or the time"},
		"at no time":        {func(_ *bot.Asked, _ *bot.Command, v *bot.Approver, _ *string) { v.Created = time.Time{} }, "the time of the approval"},
		"before it was put": {func(_ *bot.Asked, _ *bot.Command, v *bot.Approver, _ *string) { v.Created = noon.Add(-time.Second) }, "have changed"},
		"in the same second": {func(a *bot.Asked, _ *bot.Command, v *bot.Approver, _ *string) {
			a.Since, v.Created = noon.Add(900*time.Millisecond), noon
		}, "have changed"},
		"at the same time": {func(_ *bot.Asked, _ *bot.Command, v *bot.Approver, _ *string) { v.Created = noon }, "have changed"},
	} {
		t.Run(name, func(t *testing.T) {
			a, command, v, head := question(), approve, voice(), sha
			c.change(&a, &command, &v, &head)
			got, p := bot.Approve(a, command, v, head)
			if p == nil || !cmp.Equal(got, proposal.Approval{}) || !strings.Contains(p.Message, c.says) {
				t.Errorf("%+v, %+v; want %q", got, p, c.says)
			}
		})
	}
}

func TestVoid(t *testing.T) {
	approval := proposal.Approval{HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest}
	run := proposal.Run{HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest}
	for name, c := range map[string]struct {
		change func(*proposal.Approval, *proposal.Run)
		says   []string
	}{
		"the same": {func(*proposal.Approval, *proposal.Run) {}, nil},
		"a push":   {func(_ *proposal.Approval, r *proposal.Run) { r.HeadSHA = other }, []string{"the commit has changed (approved 0123456789ab, now ffffffffffff)"}},
		"a plan":   {func(_ *proposal.Approval, r *proposal.Run) { r.PlanDigest = policyDigest }, []string{"the plan has changed"}},
		"a policy": {func(_ *proposal.Approval, r *proposal.Run) { r.Policy = planDigest }, []string{"the policy has changed (approved 222222222222, now 111111111111)"}},
		"all": {func(_ *proposal.Approval, r *proposal.Run) {
			*r = proposal.Run{HeadSHA: other, PlanDigest: "x", Policy: "y"}
		}, []string{"commit", "plan", "policy", "now unknown"}},
		"a zero run":  {func(_ *proposal.Approval, r *proposal.Run) { *r = proposal.Run{} }, []string{"the commit is unknown", "the plan is unknown", "the policy is unknown"}},
		"a zero word": {func(a *proposal.Approval, _ *proposal.Run) { *a = proposal.Approval{} }, []string{"the commit is unknown"}},
		"both zero": {func(a *proposal.Approval, r *proposal.Run) {
			*a, *r = proposal.Approval{}, proposal.Run{}
		}, []string{"the commit is unknown"}},
		"an empty plan on both": {func(a *proposal.Approval, r *proposal.Run) { a.PlanDigest, r.PlanDigest = "", "" }, []string{"valid: the plan is unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, r := approval, run
			c.change(&a, &r)
			p := bot.Void(a, r)
			if (p == nil) != a.Covers(r) || (p == nil) != (c.says == nil) {
				t.Fatalf("%+v, and it covers: %v", p, a.Covers(r))
			}
			for _, says := range c.says {
				if !strings.Contains(p.Message, says) {
					t.Errorf("%q does not say %q", p.Message, says)
				}
			}
		})
	}
}
