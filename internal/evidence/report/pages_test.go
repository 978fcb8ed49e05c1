// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	ownRepository = "octo/demo"
	ownRun        = "https://github.example/octo/demo/actions/runs/812"
)

// approvedRun has a command that needed approval and was approved.
func approvedRun() proposal.Report {
	r := finish(proposal.Report{Records: []proposal.Record{
		ran("publish", "npm publish --dry-run", proposal.Exited, 0, "+ demo@1.0.0\n", ""),
		ran("unit", "npm test", proposal.Exited, 0, "1 passing\n", ""),
	}})
	r.Records[0].Decision = proposal.Decision{Effect: proposal.Ask, Rules: []string{"npm.publish"}, Reasons: []proposal.Reason{
		{Rule: "npm.publish", Effect: proposal.Ask, Message: "a person must approve `npm publish`", Command: -1},
	}}
	a := proposal.Approval{By: "maja-maintains", ByID: 7, Time: time.Date(2026, 11, 21, 4, 4, 0, 0, time.UTC), HeadSHA: r.Run.HeadSHA, PlanDigest: r.Run.PlanDigest, Policy: r.Run.Policy}
	r.Records[0].Approval, r.Run.Approval = &a, &a
	r.Totals = proposal.Total(r.Records)
	return r
}

// observedRun is a run in a repository that uses its policy in observe mode.
func observedRun() proposal.Report {
	r := finish(proposal.Report{Records: []proposal.Record{
		ran("deps", "go mod download", proposal.Exited, 1, "", "go: no network\n"),
		ran("unit", "go test ./...", proposal.Exited, 0, "ok\n", ""),
	}})
	r.Run.Mode = "observe"
	r.Records[0].Decision.Reasons = []proposal.Reason{
		{Rule: "acme.no-download", Effect: proposal.Deny, Message: "`go mod download` changes the module cache", Suggestion: "vendor it", Command: -1, Observed: true, Revision: "sha256:0123456789ab"},
	}
	return r
}

func cancelledRun() proposal.Report {
	cut := ran("soak", "go test ./stats -run TestSoak -count=100000", proposal.Signaled, -1, "=== RUN   TestSoak\n", "")
	cut.Result.Signal, cut.Result.Detail = "SIGKILL", "the run was interrupted"
	never := ran("race", "go test -race ./...", proposal.NotRun, -1, "", "")
	never.Result = &proposal.Result{Status: proposal.NotRun, ExitCode: -1, Detail: "the run was interrupted", Outputs: []proposal.Output{}, Changes: proposal.Changes{Files: []proposal.Change{}}}
	r := finish(proposal.Report{Records: []proposal.Record{ran("unit", "go test ./...", proposal.Exited, 0, "ok\n", ""), cut, never}})
	r.Error = &proposal.Failure{Code: "run.cancelled", Message: "the run was cancelled before it was done"}
	return r
}

// forkRun is a run for a pull request from a fork with submodules.
func forkRun() proposal.Report {
	r := mixed()
	r.Run.Repository, r.Run.Fork = ownRepository, "mallory/demo"
	r.Run.Left = []string{"the submodule \"vendor/zlib\" at commit 0a0a0a0a0a0a"}
	return r
}

// pages are pages with several plans, and with everything that can surround them.
func pages() map[string]Page {
	fork := Page{
		Parts: []Part{{
			Report: forkRun(), Audit: "verified: 24 entries, and every one is in the checkpoint",
			Doubt: []string{"the report says `allow` of `py`, and this repository's policy says `ask`"},
		}},
		Notices: []Notice{
			Moved(strings.Repeat("9b", 20)),
			SelfReported("every decision was made again from this repository's policy, and what the commands printed cannot be checked"),
			Touches([]string{".github/workflows/ci.yml"}),
			{Level: "note", Text: "the approval of commit `0a0a0a0a0a0a` is void: the plan is another one"},
		},
		Pending:    &Pending{Command: "/fumehood approve 3fa2b91c"},
		Repository: ownRepository, RunURL: ownRun, Artifact: "fumehood",
	}
	fork.Parts[0].Foreign, fork.Head = true, sha
	fork.Files = []string{"stats/stats_test.go", "stats/stats.go", "README.md"}
	reported := fork
	reported.Parts = []Part{{Report: allOK(), Audit: "sealed and complete: 9 entries", Foreign: true, Decided: true}}
	reported.Notices, reported.Pending = []Notice{SelfReported("the audit log was verified, and each decision was made again with this repository's policy")}, nil
	reported.Parts[0].Cosigned = &Cosigned{Key: "acme.example/fumehood+12ab34cd+AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAh", Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), File: "audit.cosigned", Artifact: "evidence-of-fumehood"}
	quiet := Page{Parts: []Part{{Report: mixed()}}, Repository: ownRepository, RunURL: ownRun, Artifact: "fumehood", Head: sha, Files: fork.Files, Detail: config.DetailQuiet}
	full := quiet
	full.Detail = config.DetailFull
	matrix := Page{
		Parts:      []Part{{Name: "linux", Report: mixed()}, {Name: "node 22", Report: allOK()}, {Name: "docs", Report: cancelledRun()}},
		Repository: ownRepository, RunURL: ownRun, Artifact: "fumehood-linux",
	}
	matrix.Parts[0].Report.Run.Unenforced = []string{"the limit of processes: this host has no pids controller"}
	dryRun := matrix
	dryRun.Parts, dryRun.DryRun = matrix.Parts[:2], true
	return map[string]Page{"page_fork": fork, "page_reported": reported, "page_quiet": quiet, "page_full": full, "page_matrix": matrix, "page_dry_run": dryRun}
}

func TestPages(t *testing.T) {
	for name, p := range pages() {
		t.Run(name, func(t *testing.T) {
			got := p.Markdown()
			golden.Compare(t, filepath.Join(folder, name+".md"), []byte(got))
			checkPage(t, p, got)
			for _, limit := range []int{6000, 12000, 25000} {
				p.Limit = limit
				if n := text.CountUnits(p.Markdown()); n > limit {
					t.Errorf("%d units at limit %d", n, limit)
				}
			}
		})
	}
}

func checkPage(t testing.TB, p Page, md string) {
	t.Helper()
	if n := text.CountUnits(md); n > MaxComment {
		t.Errorf("comment has %d units", n)
	}
	if !strings.HasPrefix(md, Marker+"\n\n"+p.verdictHeading()+"\n\n") {
		t.Errorf("comment begins %.200q", md)
	}
	checkPlain(t, "Markdown", md)
	if n := strings.Count(md, "<!-- fumehood:"); n != 1 {
		t.Errorf("%d comments that read as ours", n)
	}
	checkTree(t, md)
}

// hostilePage has s in every field that a caller sets.
func hostilePage(s string) Page {
	return Page{
		Parts:      []Part{{Name: s, Report: everywhere(s), Audit: s, Doubt: []string{s}, Cosigned: &Cosigned{Key: s, File: s, Artifact: s}}, {Name: s + "2", Report: everywhere(s + "2")}},
		Notices:    []Notice{{"warning", s}, {"note", s}, Moved(s), SelfReported(s), Touches([]string{s, s})},
		Pending:    &Pending{Command: s},
		Repository: ownRepository, RunURL: ownRun, Artifact: s,
	}
}

func TestHostilePages(t *testing.T) {
	lanetest.SkipShort(t)
	for _, a := range sample.EveryNth(t, append([]string{strings.Join(attacks, "\n"), strings.Join(attacks, " ")}, attacks...), 3, 5) {
		p := hostilePage(a)
		checkPage(t, p, p.Markdown())
		p.RunURL, p.Repository = a, a
		if md := p.Markdown(); strings.Contains(md, "<a ") {
			t.Errorf("a link out of %.80q", a)
		}
		if title := p.Check().Title; strings.ContainsAny(title, "\n\r\x1b") || len(title) > 255 {
			t.Errorf("title %q", title)
		}
	}
}

// TestFilesInArtifact: a path on a machine that is gone is useless to a reader.
func TestFilesInArtifact(t *testing.T) {
	r := limitsMet()
	r.Records[3].Result.Stdout.File, r.Audit.File = "/runner/temp/fumehood/flood.stdout", "/runner/temp/fumehood/audit.jsonl"
	p := Page{Parts: []Part{{Report: r}}, Artifact: "fumehood"}
	for _, want := range []string{"full output in <code>flood.stdout</code> in the artifact", "Audit log <code>audit.jsonl</code> in the artifact"} {
		if md := p.Body(); !strings.Contains(md, want) || strings.Contains(md, "/home/runner") {
			t.Errorf("the comment does not say %q", want)
		}
	}
	p.Artifact = ""
	if !strings.Contains(p.Body(), "full output in <code>/runner/temp/fumehood/flood.stdout</code>") {
		t.Error("without an artifact the comment does not say where the output is")
	}
}

func TestBodyIsTheRest(t *testing.T) {
	p := pages()["page_fork"]
	if p.Markdown() != Marker+"\n\n"+p.Body() {
		t.Error("Body is not Markdown without the marker")
	}
}

// TestSummary: the step summary has the same content with more room, counted in bytes.
func TestSummary(t *testing.T) {
	lanetest.SkipShort(t)
	big := huge(40, 40<<10)
	for i := range big.Records {
		s := &big.Records[i].Result.Stdout
		s.Head = []byte(strings.ReplaceAll(string(s.Head), "compiled", "übersetzt — 日本語"))
	}
	got := Page{Parts: []Part{{Report: big}}}.Summary()
	if len(got) > MaxSummary || len(got) < MaxSummary*3/4 {
		t.Errorf("%d bytes of at most %d", len(got), MaxSummary)
	}
	checkPlain(t, "summary", got)
	small := pages()["page_fork"]
	if small.Summary() != small.Body() {
		t.Error("a page that fits says something else in the summary")
	}
}

func TestDryRun(t *testing.T) {
	p := pages()["page_dry_run"]
	if md := p.Summary(); !strings.Contains(md, "nothing was posted") {
		t.Errorf("begins %.300q", md)
	}
	p.DryRun = false
	if md := p.Summary(); strings.Contains(md, "nothing was posted") {
		t.Errorf("begins %.300q", md)
	}
}

func TestCheck(t *testing.T) {
	waits := finish(proposal.Report{Records: []proposal.Record{
		ran("a", "true", proposal.Exited, 0, "", ""), refused("b", "npm publish", proposal.Ask, proposal.Reason{Rule: "npm.publish"}),
	}})
	late := cancelledRun()
	late.Error = &proposal.Failure{Code: "run.timeout", Message: "x"}
	denies := finish(proposal.Report{Records: []proposal.Record{refused("b", "x", proposal.Deny)}})
	for name, tt := range map[string]struct {
		parts []proposal.Report
		want  Check
	}{
		"success":          {[]proposal.Report{allOK()}, Check{Conclusion: "success", Title: "fumehood: 3 succeeded"}},
		"approved":         {[]proposal.Report{approvedRun()}, Check{Conclusion: "success", Title: "fumehood: 2 succeeded"}},
		"failed":           {[]proposal.Report{observedRun()}, Check{Conclusion: "failure", Title: "fumehood: 1 failed, 1 succeeded"}},
		"denied":           {[]proposal.Report{denies}, Check{Conclusion: "failure", Title: "fumehood: 1 denied"}},
		"waiting":          {[]proposal.Report{waits}, Check{Conclusion: "action_required", Title: "fumehood: 1 waiting for approval, 1 succeeded"}},
		"cancelled":        {[]proposal.Report{allOK(), cancelledRun()}, Check{Conclusion: "cancelled", Title: "fumehood was cancelled: 1 cancelled, 1 not run, 4 succeeded"}},
		"out of time":      {[]proposal.Report{late}, Check{Conclusion: "failure", Title: "fumehood ran out of time: 1 cancelled, 1 not run, 1 succeeded"}},
		"stopped":          {[]proposal.Report{cancelledRun(), stopped()}, Check{Conclusion: "failure", Title: "fumehood stopped: 1 failed, 1 cancelled, 2 not run, 2 succeeded"}},
		"nothing proposed": {[]proposal.Report{finish(proposal.Report{})}, Check{Conclusion: "neutral", Title: "fumehood: no commands were proposed"}},
	} {
		var p Page
		for _, r := range tt.parts {
			p.Parts = append(p.Parts, Part{Report: r})
		}
		got := p.Check()
		if got.Summary == "" || text.CountUnits(got.Summary) > maxCheck {
			t.Errorf("%s: summary of %d units", name, text.CountUnits(got.Summary))
		}
		got.Summary = ""
		if got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestCheckOfForeign: a report that its author could write never results in success.
func TestCheckOfForeign(t *testing.T) {
	for title, part := range map[string]Part{
		"fumehood: the pull request's own run reports: 3 succeeded":                 {Report: allOK(), Foreign: true},
		"fumehood: the pull request's own run reports: 3 succeeded (not confirmed)": {Report: allOK(), Foreign: true, Doubt: []string{"the audit log does not verify"}},
	} {
		p := Page{Parts: []Part{part}}
		got := p.Check()
		if got.Conclusion != "neutral" || got.Title != title {
			t.Errorf("got %s, %q", got.Conclusion, got.Title)
		}
		if strings.Contains(got.Summary, "Nothing to do") && len(part.Doubt) > 0 {
			t.Error("a doubted report says that there is nothing to do")
		}
	}
	failing := Page{Parts: []Part{{Report: mixed(), Foreign: true}}}
	if got := failing.Check(); got.Conclusion != "failure" {
		t.Errorf("an untrusted failure is %s", got.Conclusion)
	}
}

// TestForeign: the plain words of an untrusted report are not shown as fumehood's.
func TestForeign(t *testing.T) {
	const lie = "approved by the maintainers please merge"
	r := mixed()
	r.Error = &proposal.Failure{Code: "x", Message: lie, Hint: lie}
	r.Run.Enforced, r.Run.Unenforced, r.Run.Left = []string{lie}, []string{lie}, []string{lie + " `" + lie}
	for i := range r.Records {
		for j := range r.Records[i].Decision.Reasons {
			r.Records[i].Decision.Reasons[j].Message, r.Records[i].Decision.Reasons[j].Suggestion = lie, lie
		}
		if res := r.Records[i].Result; res != nil {
			res.Detail, res.Outputs = lie, []proposal.Output{{Path: "x", Refused: lie}}
		}
	}
	bare := func(md string) int { return strings.Count(md, lie) - strings.Count(md, "<code>"+lie) }
	if n := bare(Page{Parts: []Part{{Report: r}}}.Body()); n == 0 {
		t.Fatal("the lie stands nowhere: the test tests nothing")
	}
	p := Page{Parts: []Part{{Report: r, Foreign: true}}}
	if md := p.Body(); bare(md) != 1 || !strings.Contains(md, "<code>"+lie+" &#39;"+lie+"</code>") { // the second of one code element
		t.Errorf("untrusted words are shown as ours:\n%s", md)
	}
	decided := Page{Parts: []Part{{Report: r, Foreign: true, Decided: true}}}.Body()
	if !strings.Contains(decided, "</code>\n<br>"+lie+"<br>") {
		t.Error("the words of our own decisions are shown as untrusted")
	}
	if r.Run.Enforced[0] != lie || r.Records[3].Decision.Reasons[0].Message != lie {
		t.Error("the caller's report was changed")
	}
}
