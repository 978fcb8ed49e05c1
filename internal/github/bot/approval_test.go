// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	planDigest   = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	policyDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	other        = "ffffffffffffffffffffffffffffffffffffffff"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func shown() bot.ApprovalQuestion {
	return bot.ApprovalQuestion{Nonce: "N", HeadSHA: sha, Plans: []bot.AskedPlan{
		{Name: "unit", PlanDigest: planDigest, Policy: policyDigest}, {Name: "lint", PlanDigest: policyDigest, Policy: policyDigest},
	}}
}

func approver() bot.Approver {
	return bot.Approver{Login: "mona", ID: 9, URL: "https://github.example/x/1", Created: noon}
}

// The digits depend on everything that a person is asked about, and on the nonce.
func TestAskedDigest(t *testing.T) {
	if d := shown().Digest(); len(d) != 64 || shown().Digits() != d[:8] || d != shown().Digest() {
		t.Errorf("digest %q, digits %q", d, shown().Digits())
	}
	seen := map[string]string{shown().Digest(): "as shown"}
	for name, change := range map[string]func(*bot.ApprovalQuestion){
		"nonce":     func(a *bot.ApprovalQuestion) { a.Nonce = "O" },
		"commit":    func(a *bot.ApprovalQuestion) { a.HeadSHA = other },
		"name":      func(a *bot.ApprovalQuestion) { a.Plans[0].Name = "unit2" },
		"plan":      func(a *bot.ApprovalQuestion) { a.Plans[0].PlanDigest = policyDigest },
		"last plan": func(a *bot.ApprovalQuestion) { a.Plans[1].PlanDigest = planDigest },
		"policy":    func(a *bot.ApprovalQuestion) { a.Plans[1].Policy = planDigest },
		"order":     func(a *bot.ApprovalQuestion) { a.Plans[0], a.Plans[1] = a.Plans[1], a.Plans[0] },
		"fewer":     func(a *bot.ApprovalQuestion) { a.Plans = a.Plans[:1] },
		"more":      func(a *bot.ApprovalQuestion) { a.Plans = append(a.Plans, a.Plans[0]) },
	} {
		a := shown()
		change(&a)
		if before, there := seen[a.Digest()]; there || a.Digest() == "" {
			t.Errorf("%s: the digest %q is that of %s", name, a.Digest(), before)
		}
		seen[a.Digest()] = name
	}
	for name, change := range map[string]func(*bot.ApprovalQuestion){
		"no nonce":  func(a *bot.ApprovalQuestion) { a.Nonce = "" },
		"no commit": func(a *bot.ApprovalQuestion) { a.HeadSHA = "" },
		"no plans":  func(a *bot.ApprovalQuestion) { a.Plans = nil },
		"no plan":   func(a *bot.ApprovalQuestion) { a.Plans[1].PlanDigest = "" },
		"no policy": func(a *bot.ApprovalQuestion) { a.Plans[1].Policy = "" },
	} {
		a := shown()
		change(&a)
		if a.Digest() != "" || a.Digits() != "" {
			t.Errorf("%s: digest %q", name, a.Digest())
		}
	}
}

// Two plans whose digests begin with the same digits are easily found. With the nonce of a later
// question, they differ.
func TestAskedDigestOfChosenPlans(t *testing.T) {
	lanetest.SkipShort(t)
	plans := map[string]string{}
	for i := range 1 << 18 {
		a := shown()
		a.Plans = []bot.AskedPlan{{PlanDigest: fmt.Sprint("sha256:", i), Policy: policyDigest}}
		first, found := plans[a.Digits()]
		if plans[a.Digits()] = a.Plans[0].PlanDigest; !found {
			continue
		}
		b := a
		b.Nonce, b.Plans = "O", []bot.AskedPlan{{PlanDigest: first, Policy: policyDigest}}
		if a.Digits() == b.Digits() {
			t.Errorf("%q and %q have the same digits with another nonce", first, a.Plans[0].PlanDigest)
		}
		return
	}
	t.Error("no two plans have the same digits")
}

func TestApprove(t *testing.T) {
	for _, digits := range []string{shown().Digits(), shown().Digest()[:20], shown().Digest()} {
		command, _, p := bot.Read("/fumehood approve " + digits)
		if p != nil {
			t.Fatal(p)
		}
		got, p := bot.ApprovePlans(shown(), shown(), command, approver())
		one := proposal.Approval{By: "mona", ByID: 9, URL: "https://github.example/x/1", Time: noon, HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest}
		two := one
		two.PlanDigest = policyDigest
		if diff := cmp.Diff([]proposal.Approval{one, two}, got); diff != "" || p != nil {
			t.Fatalf("%+v %s", p, diff)
		}
		if !got[0].Covers(proposal.Run{HeadSHA: sha, PlanDigest: planDigest, Policy: policyDigest}) {
			t.Error("the approval does not cover what was asked")
		}
	}
}

// Whatever has changed since a person read it, nothing is approved, and the answer has the
// command to write.
func TestApproveRefuses(t *testing.T) {
	ask := bot.ApproveCommand(shown().Digits())
	for name, c := range map[string]struct {
		change      func(shown, now *bot.ApprovalQuestion, c *bot.Command, by *bot.Approver)
		says, write string
	}{
		"another command": {func(_, _ *bot.ApprovalQuestion, c *bot.Command, _ *bot.Approver) { c.Name = "run" }, "not an approval", ""},
		"nothing asked":   {func(s, _ *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { *s = bot.ApprovalQuestion{} }, "nothing is waiting", ""},
		"nothing at all": {func(s, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) {
			*s, *n = bot.ApprovalQuestion{}, bot.ApprovalQuestion{}
		}, "nothing is waiting", ""},
		"an older release's":  {func(s, _ *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { s.Nonce = "" }, "nothing is waiting", ""},
		"no digits":           {func(_, _ *bot.ApprovalQuestion, c *bot.Command, _ *bot.Approver) { c.Digits = "" }, "requires the digits", ask},
		"too few digits":      {func(_, _ *bot.ApprovalQuestion, c *bot.Command, _ *bot.Approver) { c.Digits = c.Digits[:7] }, "no commands that wait", ask},
		"the commit's digits": {func(_, _ *bot.ApprovalQuestion, c *bot.Command, _ *bot.Approver) { c.Digits = sha[:12] }, "no commands that wait for approval now have these digits", ask},
		"another's digits":    {func(_, _ *bot.ApprovalQuestion, c *bot.Command, _ *bot.Approver) { c.Digits = shown().Digest()[8:16] }, "no commands that wait for approval now have these digits", ask},
		"more digits":         {func(_, _ *bot.ApprovalQuestion, c *bot.Command, _ *bot.Approver) { c.Digits += "0123" }, "no commands that wait", ask},
		"a push":              {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { n.HeadSHA = other }, "the commit has changed (shown 0123456789ab, now ffffffffffff)", "/fumehood rerun"},
		"no head":             {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { n.HeadSHA = "" }, "now unknown", "/fumehood rerun"},
		"another plan":        {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { n.Plans[1].PlanDigest = planDigest }, "the plan has changed (shown 222222222222, now 111111111111)", "/fumehood rerun"},
		"a plan unread":       {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { n.Plans[1].PlanDigest = "" }, "the plan has changed", "/fumehood rerun"},
		"another policy":      {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { n.Plans[0].Policy = planDigest }, "the policy has changed", "/fumehood rerun"},
		"fewer plans":         {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { n.Plans = n.Plans[:1] }, "the plans have changed", "/fumehood rerun"},
		"more plans": {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) {
			n.Plans = append(n.Plans, n.Plans[0])
		}, "the plans have changed", "/fumehood rerun"},
		"nothing now": {func(_, n *bot.ApprovalQuestion, _ *bot.Command, _ *bot.Approver) { *n = bot.ApprovalQuestion{} }, "the commit has changed", "/fumehood rerun"},
		"no person":   {func(_, _ *bot.ApprovalQuestion, _ *bot.Command, by *bot.Approver) { by.ID = 0 }, "the author or the time", ""},
		"at no time":  {func(_, _ *bot.ApprovalQuestion, _ *bot.Command, by *bot.Approver) { by.Created = time.Time{} }, "the time of the approval", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, n, command, by := shown(), shown(), bot.Command{Name: "approve", Digits: shown().Digits()}, approver()
			c.change(&s, &n, &command, &by)
			got, p := bot.ApprovePlans(s, n, command, by)
			if p == nil || got != nil || !strings.Contains(p.Message, c.says) || strings.Join(p.Write, "") != c.write || !strings.Contains(p.RenderMarkdown(), c.write) {
				t.Errorf("%+v, %+v; want %q and the command %q", got, p, c.says, c.write)
			}
		})
	}
}

// Of several questions, the digits name one. Those of none are answered with all.
func TestChoose(t *testing.T) {
	second := shown()
	second.Nonce = "O"
	questions := []bot.ApprovalQuestion{{}, shown(), second}
	for i, digits := range []string{"", shown().Digits(), second.Digest()} {
		if got, p := bot.ChooseQuestion(questions, bot.Command{Digits: digits}); i > 0 && (got != i || p != nil) || i == 0 && p == nil {
			t.Errorf("%q: %d, %+v", digits, got, p)
		}
	}
	i, p := bot.ChooseQuestion(questions, bot.Command{Digits: sha[:8]})
	want := "`/fumehood approve " + shown().Digits() + "` or `/fumehood approve " + second.Digits() + "`"
	if i >= 0 || p == nil || !strings.Contains(p.RenderMarkdown(), want) {
		t.Errorf("%d, %+v; want %q", i, p, want)
	}
	if i, p := bot.ChooseQuestion([]bot.ApprovalQuestion{{}}, bot.Command{}); i >= 0 || p == nil || p.Write != nil {
		t.Errorf("%d, %+v", i, p)
	}
}
