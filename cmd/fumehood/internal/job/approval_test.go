// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	sha      = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	otherSHA = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	document = "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat README.md}\n"
)

var (
	noon         = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	policyDigest = "sha256:" + strings.Repeat("1", 64)
)

// A given is an approval with everything that it is bound to.
type given struct {
	command bot.Command
	state   comment.State
	runs    []PlanRun
	now     current
}

func (g *given) approve() ([]Planned, *bot.Problem) {
	return approve(g.command, questionsOf(g.state), g.runs, g.now)
}

// lintPlan is a second plan that waits.
const lintPlan = "schema: fumehood.plan/v1\nproposals:\n  - {id: lint, run: make lint}\n"

// swappedPlan replaces a plan that waits.
const swappedPlan = "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat /etc/passwd}\n"

func digestOf(t *testing.T, document string) string {
	t.Helper()
	p, problems := plan.Decode([]byte(document), planName)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p.Digest
}

func validApproval(t *testing.T) given {
	t.Helper()
	g := given{
		state: comment.State{Sections: []comment.Section{{Result: comment.Result{Stamp: comment.Stamp{Head: sha, RunID: 7, Attempt: 1}}}}},
		now: current{head: sha, policy: policyDigest, cwd: "service",
			approver: bot.Approver{Login: "mona", ID: 9, URL: "https://github.example/1", Created: noon}},
	}
	g.show(t, "NONCE", 5, document, lintPlan)
	g.command = bot.Command{Name: "approve", Digits: questionsOf(g.state)[0].asked().Digits()}
	return g
}

// show replaces what the comment shows as waiting, and its artifacts, of which the first has an id.
func (g *given) show(t *testing.T, nonce string, id int64, documents ...string) {
	t.Helper()
	shown := &g.state.Sections[0]
	shown.Pending, g.runs = nil, nil
	for i, text := range documents {
		name, digest := fmt.Sprint("fumehood-", i), digestOf(t, text)
		shown.Pending = append(shown.Pending, comment.Pending{Name: fmt.Sprint(i), PlanDigest: digest, Policy: policyDigest, RunID: 7, Artifact: name, ArtifactID: id + int64(i), Nonce: nonce})
		g.runs = append(g.runs, PlanRun{document: []byte(text), artifact: artifactRef{run: 7, id: id + int64(i), name: name},
			Report: proposal.Report{Run: proposal.Run{PlanDigest: digest, Cwd: "service"}}})
	}
}

// An approval holds for the commit, plans, policy, directory and artifacts that the comment
// showed, and for nothing else.
func TestApprove(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*given)
		want   string // a piece of the problem; "" when the approval holds
	}{
		"as shown":                  {func(*given) {}, ""},
		"an artifact without id":    {func(g *given) { g.state.Sections[0].Pending[0].ArtifactID = 0 }, ""},
		"the runs in another order": {func(g *given) { g.runs[0], g.runs[1] = g.runs[1], g.runs[0] }, ""},
		"another run beside":        {func(g *given) { g.runs = append(g.runs, PlanRun{document: []byte(document)}) }, ""},
		"no digits":                 {func(g *given) { g.command.Digits = "" }, "requires the digits"},
		"the commit's digits":       {func(g *given) { g.command.Digits = sha[:12] }, "no commands that wait"},
		"the head moved":            {func(g *given) { g.now.head = otherSHA }, "the commit has changed"},
		"an unknown approver":       {func(g *given) { g.now.approver.ID = 0 }, "the author or the time of the approval"},
		"the artifact replaced":     {func(g *given) { g.runs[0].artifact.id = 6 }, "the artifact has been replaced"},
		"another directory":         {func(g *given) { g.now.cwd = "" }, "working directory has changed"},
		"another plan":              {func(g *given) { g.runs[1].document = []byte(document + "# more\n") }, "the plan has changed"},
		"another plan, reported":    {func(g *given) { g.runs[0].document, g.runs[0].Report.Run.PlanDigest = []byte(swappedPlan), "sha256:x" }, "the plan has changed"},
		"no plan":                   {func(g *given) { g.runs[0].document = nil }, "the plan has changed"},
		"an artifact is gone":       {func(g *given) { g.runs = g.runs[:1] }, "the plan has changed"},
		"another policy":            {func(g *given) { g.now.policy = "sha256:" + strings.Repeat("2", 64) }, "the policy has changed"},
		"a policy that is unknown":  {func(g *given) { g.now.policy = "" }, "the policy has changed"},
		"nothing waits":             {func(g *given) { g.state.Sections[0].Pending = nil }, "nothing is waiting"},
		"an older release's":        {func(g *given) { g.state.Sections[0].Pending[0].Nonce, g.state.Sections[0].Pending[1].Nonce = "", "" }, "nothing is waiting"},
		"two questions":             {func(g *given) { g.state.Sections[0].Pending[1].Nonce = "OTHER" }, "no commands that wait"},
	} {
		t.Run(name, func(t *testing.T) {
			g := validApproval(t)
			test.change(&g)
			plans, problem := g.approve()
			if test.want != "" {
				if problem == nil || plans != nil || !strings.Contains(problem.Message, test.want) {
					t.Errorf("got %+v, %+v, want a problem with %q", plans, problem, test.want)
				}
				return
			}
			want := proposal.Approval{By: "mona", ByID: 9, URL: "https://github.example/1", Time: noon,
				HeadSHA: sha, PlanDigest: digestOf(t, document), Policy: policyDigest}
			lint := want
			lint.PlanDigest = digestOf(t, lintPlan)
			if diff := cmp.Diff([]Planned{{"0", document, planName, &want}, {"1", lintPlan, planName, &lint}}, plans); problem != nil || diff != "" {
				t.Errorf("%+v\n%s", problem, diff)
			}
		})
	}
}

// The attack: the plan that waits is replaced while a maintainer reads it, in the comment too.
// The maintainer's digits are those of the plan that they read, and the answer has the ones of
// the plan that waits now.
func TestApproveReplacedWhileReading(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, g *given){
		"another plan":            func(t *testing.T, g *given) { g.show(t, "NONCE2", 8, swappedPlan, lintPlan) },
		"the other plans only":    func(t *testing.T, g *given) { g.show(t, "NONCE2", 8, lintPlan) },
		"one plan more":           func(t *testing.T, g *given) { g.show(t, "NONCE2", 8, document, lintPlan, swappedPlan) },
		"with the nonce replayed": func(t *testing.T, g *given) { g.show(t, "NONCE", 5, swappedPlan, lintPlan) },
		"the same plan":           func(t *testing.T, g *given) { g.show(t, "NONCE2", 5, document, lintPlan) },
	} {
		t.Run(name, func(t *testing.T) {
			g := validApproval(t)
			replace(t, &g)
			plans, problem := g.approve()
			next := bot.ApproveCommand(questionsOf(g.state)[0].asked().Digits())
			if plans != nil || problem == nil || !slices.Equal(problem.Write, []string{next}) || strings.Contains(next, g.command.Digits) || !strings.Contains(problem.Message, "no commands that wait") {
				t.Fatalf("%+v, %+v; want the command %q", plans, problem, next)
			}
			g.command, _, _ = bot.Read(problem.Write[0])
			if plans, problem := g.approve(); problem != nil || len(plans) != len(g.state.PendingPlans()) {
				t.Errorf("the command that was shown approves nothing: %+v, %+v", plans, problem)
			}
		})
	}
}

// Each plan that waits has the run with the same plan of the same artifact.
func TestFindWaiting(t *testing.T) {
	at := func(run int64, artifact, dir, digest string) PlanRun {
		return PlanRun{artifact: artifactRef{run: run, name: artifact, dir: dir}, Report: proposal.Report{Run: proposal.Run{PlanDigest: digest}}}
	}
	waits := []comment.Pending{
		{PlanDigest: "1", Artifact: "x", RunID: 7}, {PlanDigest: "2", Artifact: "x", RunID: 7}, {PlanDigest: "1", Artifact: "x", RunID: 7},
		{PlanDigest: "3", Artifact: "y", RunID: 7}, {PlanDigest: "1", Artifact: "z", RunID: 8},
	}
	for name, test := range map[string]struct {
		runs []PlanRun
		want []int
	}{
		"nothing":                       {nil, []int{-1, -1, -1, -1, -1}},
		"each":                          {[]PlanRun{at(8, "z", "", "1"), at(7, "y", "", "3"), at(7, "x", "2", "1"), at(7, "x", "1", "2"), at(7, "x", "0", "1")}, []int{2, 3, 4, 1, 0}},
		"another plan in the one's":     {[]PlanRun{at(7, "y", "", "9")}, []int{-1, -1, -1, 0, -1}}, // whose digest then differs
		"another plan of several":       {[]PlanRun{at(7, "x", "1", "9")}, []int{-1, -1, -1, -1, -1}},
		"in a directory of the one's":   {[]PlanRun{at(7, "y", "0", "9")}, []int{-1, -1, -1, -1, -1}},
		"another run, another artifact": {[]PlanRun{at(8, "x", "", "1"), at(7, "z", "", "1"), at(7, "fumehood", "", "1")}, []int{-1, -1, -1, -1, -1}},
	} {
		if got := findWaiting(waits, test.runs); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A request is for one commit, and an approval in it for one.
func TestCheckPullRequest(t *testing.T) {
	approval := &proposal.Approval{HeadSHA: sha, Time: noon}
	plain, approved := Request{Head: sha, Base: sha, Plans: []Planned{{}}}, Request{Head: sha, Base: sha, Plans: []Planned{{}, {Approval: approval}}}
	pr := func(head string) github.PullRequest { return github.PullRequest{Head: github.Ref{SHA: head}} }
	for name, test := range map[string]struct {
		got  error
		want string
	}{
		"the head":       {plain.checkHead(pr(sha)), ""},
		"the head moved": {plain.checkHead(pr(otherSHA)), "head.moved"},
	} {
		if code := codeOf(test.got); code != test.want {
			t.Errorf("%s: %q, want %q", name, code, test.want)
		}
	}
	if other := (proposal.Approval{HeadSHA: otherSHA, Time: noon}); !approved.approves(*approval) || approved.approves(other) || plain.approves(*approval) {
		t.Error("a request approves something else than its plans' approvals")
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return proposal.FailureOf(err).Code
}

// A request survives its way between jobs, and is read strictly.
func TestRequest(t *testing.T) {
	good := Request{Command: "approve", PR: 2, Head: sha, Base: otherSHA, Comment: 3,
		Plans: []Planned{{Name: "unit", Document: document, File: "plan", Approval: &proposal.Approval{By: "mona", HeadSHA: sha}}}}
	text, err := good.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeRequest(text)
	if diff := cmp.Diff(good, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"another field": strings.Replace(text, `"pr"`, `"may":true,"pr"`, 1),
		"more":          text + text,
		"no PR":         strings.Replace(text, `"pr":2`, `"pr":0`, 1),
		"a short head":  strings.Replace(text, sha, sha[:12], 1),
		"a branch":      strings.Replace(text, otherSHA, "main", 1),
		"no plans":      `{"command":"run","pr":2,"head":"` + sha + `","base":"` + sha + `","plans":[]}`,
		"many plans":    `{"command":"run","pr":2,"head":"` + sha + `","base":"` + sha + `","plans":[{}` + strings.Repeat(",{}", maxPlans) + `]}`,
		"too long":      text + strings.Repeat(" ", maxRequest),
	} {
		if got, err := decodeRequest(text); codeOf(err) != "request.invalid" || got.PR != 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	good.Plans[0].Document = strings.Repeat("x", maxRequest)
	if _, err := good.encode(); codeOf(err) != "request.invalid" {
		t.Errorf("a request that does not fit: %v", err)
	}
}
