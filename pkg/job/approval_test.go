// SPDX-License-Identifier: Apache-2.0

//go:build linux

package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/bot"
	"github.com/fumehood/fumehood/pkg/comment"
	"github.com/fumehood/fumehood/pkg/github"
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
	command  bot.Command
	standing comment.Current
	waits    comment.Pending
	run      PlanRun
	now      current
}

func validApproval(t *testing.T) given {
	t.Helper()
	p, problems := plan.Decode([]byte(document), planName)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	result := &comment.Result{Stamp: comment.Stamp{Head: sha, RunID: 7, Attempt: 1}}
	return given{
		command:  bot.Command{Name: "approve", SHA: sha[:12]},
		standing: comment.Current{State: comment.State{Result: result}, Since: noon},
		waits:    comment.Pending{PlanDigest: p.Digest, Policy: policyDigest, RunID: 7, Artifact: "fumehood", ArtifactID: 5},
		run: PlanRun{document: []byte(document), artifact: artifactRef{run: 7, id: 5, name: "fumehood"},
			Report: proposal.Report{Run: proposal.Run{PlanDigest: p.Digest, Cwd: "service"}}},
		now: current{head: sha, policy: policyDigest, cwd: "service",
			approver: bot.Approver{Login: "mona", ID: 9, URL: "https://github.example/1", Created: noon.Add(time.Minute)}},
	}
}

// An approval holds for the commit, plan, policy, directory and artifact that the comment
// showed, and for nothing else.
func TestApprove(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*given)
		want   string // a piece of the problem; "" when the approval holds
	}{
		"as shown":                 {func(*given) {}, ""},
		"an artifact without id":   {func(g *given) { g.waits.ArtifactID = 0 }, ""},
		"another commit named":     {func(g *given) { g.command.SHA = otherSHA[:12] }, "another commit"},
		"the head moved":           {func(g *given) { g.now.head = otherSHA }, "newer commit"},
		"the comment changed":      {func(g *given) { g.standing.Since = noon.Add(time.Minute) }, "have changed"},
		"an unknown approver":      {func(g *given) { g.now.approver.ID = 0 }, "the author or the time of the approval"},
		"the artifact replaced":    {func(g *given) { g.run.artifact.id = 6 }, "the artifact has been replaced"},
		"another directory":        {func(g *given) { g.now.cwd = "" }, "working directory has changed"},
		"another plan":             {func(g *given) { g.run.document = []byte(document + "# more\n") }, "the plan has changed"},
		"no plan":                  {func(g *given) { g.run.document = nil }, "can no longer be read"},
		"another policy":           {func(g *given) { g.now.policy = "sha256:" + strings.Repeat("2", 64) }, "the policy has changed"},
		"a policy that is unknown": {func(g *given) { g.now.policy = "" }, "the policy is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			g := validApproval(t)
			test.change(&g)
			approval, problem := approve(g.command, g.standing, g.waits, g.run, g.now)
			if test.want != "" {
				if problem == nil || !strings.Contains(problem.Message, test.want) {
					t.Errorf("got %+v, want a problem with %q", problem, test.want)
				}
				return
			}
			want := proposal.Approval{By: "mona", ByID: 9, URL: "https://github.example/1", Time: noon.Add(time.Minute),
				HeadSHA: sha, PlanDigest: g.waits.PlanDigest, Policy: policyDigest}
			if diff := cmp.Diff(want, approval); problem != nil || diff != "" {
				t.Errorf("%+v\n%s", problem, diff)
			}
		})
	}
}

// An approval goes to the question about the same plan of the same artifact.
func TestWaiting(t *testing.T) {
	state := comment.State{Pending: []comment.Pending{
		{Name: "a", PlanDigest: "1", Artifact: "x", RunID: 7}, {Name: "b", PlanDigest: "2", Artifact: "x", RunID: 7},
		{Name: "c", PlanDigest: "3", Artifact: "y", RunID: 7}, {Name: "d", PlanDigest: "1", Artifact: "z", RunID: 8},
	}}
	for name, test := range map[string]struct {
		at     artifactRef
		digest string
		want   string
	}{
		"the first":                   {artifactRef{run: 7, name: "x", dir: "0"}, "1", "a"},
		"the second":                  {artifactRef{run: 7, name: "x", dir: "1"}, "2", "b"},
		"another plan of several":     {artifactRef{run: 7, name: "x", dir: "1"}, "9", ""},
		"another plan in the one's":   {artifactRef{run: 7, name: "y"}, "9", "c"}, // whose digest then differs
		"in a directory of the one's": {artifactRef{run: 7, name: "y", dir: "0"}, "9", ""},
		"another run":                 {artifactRef{run: 8, name: "x"}, "1", ""},
		"another artifact":            {artifactRef{run: 7, name: "fumehood"}, "1", ""},
	} {
		got, found := waiting(state, PlanRun{artifact: test.at, Report: proposal.Report{Run: proposal.Run{PlanDigest: test.digest}}})
		if got.Name != test.want || found != (test.want != "") {
			t.Errorf("%s: %+v, %t", name, got, found)
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
