// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// situations are events as Admit sees them. For a comment or a dispatch, the pull
// request comes from the API.
var situations = map[string]struct {
	file string
	api  *PullRequest
}{
	"pull_request, own":             {file: "pull_request.opened.json"},
	"pull_request, push":            {file: "pull_request.synchronize.json"},
	"pull_request, draft":           {file: "pull_request.opened.draft.json"},
	"pull_request, fork":            {file: "pull_request.opened.fork.json"},
	"pull_request, fork is gone":    {file: "pull_request.opened.deletedfork.json"},
	"pull_request, Dependabot":      {file: "pull_request.opened.dependabot.json"},
	"pull_request, closed":          {file: "pull_request.closed.json"},
	"pull_request, fork, closed":    {file: "pull_request.closed.fork.json"},
	"workflow_run, own":             {file: "workflow_run.completed.pr.json"},
	"workflow_run, fork":            {file: "workflow_run.completed.pr.fork.json"},
	"workflow_run, fork is gone":    {file: "workflow_run.completed.pr.deletedfork.json"},
	"workflow_run, fork, failed":    {file: "workflow_run.completed.pr.fork.failure.json"},
	"workflow_run, fork, cancelled": {file: "workflow_run.completed.pr.fork.cancelled.json"},
	"workflow_run, of a push":       {file: "workflow_run.completed.push.json"},
	"workflow_run, of a comment":    {file: "workflow_run.completed.comment.json"},
	"workflow_run, requested":       {file: "workflow_run.requested.json"},
	"issue_comment, own":            {file: "issue_comment.created.pr.json", api: &PullRequest{}},
	"issue_comment, fork":           {file: "issue_comment.created.pr.json", api: &PullRequest{Fork: true}},
	"issue_comment, unknown":        {file: "issue_comment.created.pr.json"},
	"issue_comment, edited":         {file: "issue_comment.edited.pr.json", api: &PullRequest{}},
	"issue_comment, deleted":        {file: "issue_comment.deleted.pr.json", api: &PullRequest{}},
	"issue_comment, on an issue":    {file: "issue_comment.created.json"},
	"workflow_dispatch, own":        {file: "workflow_dispatch.json", api: &PullRequest{}},
	"workflow_dispatch, fork":       {file: "workflow_dispatch.json", api: &PullRequest{Fork: true}},
	"workflow_dispatch, unknown":    {file: "workflow_dispatch.json"},
	"workflow_dispatch, no pr":      {file: "workflow_dispatch.bare.json"},
	"review, own":                   {file: "pull_request_review.submitted.json", api: &PullRequest{}},
	"review, fork":                  {file: "pull_request_review.submitted.json", api: &PullRequest{Fork: true}},
	"review, unknown":               {file: "pull_request_review.submitted.json"},
	"review's comment, own":         {file: "pull_request_review_comment.created.json", api: &PullRequest{}},
	"review's comment, fork":        {file: "pull_request_review_comment.created.json", api: &PullRequest{Fork: true}},
	"merge_group":                   {file: "merge_group.checks_requested.json"},
}

// situation returns the event and a matching runner.
func situation(t *testing.T, name string) (Event, Runner) {
	t.Helper()
	s, known := situations[name]
	if !known {
		t.Fatalf("no situation %q", name)
	}
	event, _, _ := strings.Cut(s.file, ".")
	e, err := ReadEvent(event, payloadOf(t, s.file))
	if err != nil {
		t.Fatal(err)
	}
	if s.api != nil {
		e.PR = s.api
	}
	r := Runner{Repository: e.Repository.Name, EventName: event, OS: "Linux", Arch: "X64", Workspace: "/runner/workspace"}
	if e.Group != nil {
		r.SHA = e.Group.Head.SHA
	}
	return e, r
}

// matrix has the expected result for each phase input: a Phase, or the code of a
// refusal. The columns are auto, run, report, trigger, review and find.
var matrix = map[string][7]string{
	"pull_request, own":             {"run and report", "run", "report", "action.phase", "review and report", "find", "split"},
	"pull_request, push":            {"run and report", "run", "report", "action.phase", "review and report", "find", "split"},
	"pull_request, draft":           {"run and report", "run", "report", "action.phase", "review and report", "find", "split"},
	"pull_request, fork":            {"run", "run", "nothing", "action.phase", "review", "nothing", "split"},
	"pull_request, fork is gone":    {"run", "run", "nothing", "action.phase", "review", "nothing", "split"},
	"pull_request, Dependabot":      {"run", "run", "nothing", "action.phase", "review", "nothing", "split"},
	"pull_request, closed":          {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"pull_request, fork, closed":    {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"workflow_run, own":             {"report", "action.workflow-run", "report", "action.phase", "action.workflow-run", "action.workflow-run", "action.split"},
	"workflow_run, fork":            {"report", "action.workflow-run", "report", "action.phase", "action.workflow-run", "action.workflow-run", "action.split"},
	"workflow_run, fork is gone":    {"report", "action.workflow-run", "report", "action.phase", "action.workflow-run", "action.workflow-run", "action.split"},
	"workflow_run, fork, failed":    {"report", "action.workflow-run", "report", "action.phase", "action.workflow-run", "action.workflow-run", "action.split"},
	"workflow_run, fork, cancelled": {"report", "action.workflow-run", "report", "action.phase", "action.workflow-run", "action.workflow-run", "action.split"},
	"workflow_run, of a push":       {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"workflow_run, of a comment":    {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"workflow_run, requested":       {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"issue_comment, own":            {"run and report", "run", "report", "trigger", "review", "find", "action.split"},
	"issue_comment, fork":           {"action.fork-one-job", "run", "report", "trigger", "review", "find", "action.split"},
	"issue_comment, unknown":        {"action.fork-one-job", "run", "report", "trigger", "review", "find", "action.split"},
	"issue_comment, edited":         {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"issue_comment, deleted":        {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"issue_comment, on an issue":    {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"workflow_dispatch, own":        {"run and report", "run", "report", "action.phase", "review and report", "find", "split"},
	"workflow_dispatch, fork":       {"action.fork-one-job", "run", "report", "action.phase", "review", "find", "split"},
	"workflow_dispatch, unknown":    {"action.fork-one-job", "run", "report", "action.phase", "review", "find", "split"},
	"workflow_dispatch, no pr":      {"run", "run", "report", "action.phase", "nothing", "nothing", "split"},
	"review, own":                   {"run and report", "run", "report", "trigger", "review", "find", "action.split"},
	"review, fork":                  {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"review, unknown":               {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"review's comment, own":         {"run and report", "run", "report", "trigger", "review", "find", "action.split"},
	"review's comment, fork":        {"nothing", "nothing", "nothing", "nothing", "nothing", "nothing", "nothing"},
	"merge_group":                   {"run and report", "run", "report", "action.phase", "nothing", "nothing", "split"},
}

var matrixPhases = [7]string{PhaseAuto, PhaseRun, PhaseReport, PhaseTrigger, PhaseReview, PhaseFind, PhaseSplit}

var goodFacts = Facts{Sudo: true}

var phaseNames = [...]string{Nothing: "nothing", Run: "run", Report: "report", RunAndReport: "run and report", Review: "review", ReviewAndReport: "review and report", Trigger: "trigger", Find: "find", Split: "split"}

// outcomeOfAdmit is a phase in words, or a refusal's code.
func outcomeOfAdmit(t *testing.T, r Runner, e Event, in Inputs, facts Facts) string {
	t.Helper()
	a, err := Admit(r, e, in, facts)
	var stop *proposal.StopError
	switch {
	case err == nil:
		if a.Phase == Nothing && a.Reason == "" {
			t.Error("nothing is done, without a reason")
		}
		return phaseNames[a.Phase]
	case !errors.As(err, &stop) || a != Admission{}:
		t.Fatalf("admission %v, error %v", a, err)
	}
	checkRefusal(t, stop)
	return stop.Code
}

// checkRefusal checks that a refusal says how to fix it, with valid YAML.
func checkRefusal(t *testing.T, stop *proposal.StopError) {
	t.Helper()
	prose, yamlText, found := strings.Cut(stop.Hint, ":\n\n")
	if !found {
		if prose == "" || !strings.HasPrefix(stop.Code, "event.") {
			t.Errorf("%s: hint %q has no YAML", stop.Code, stop.Hint)
		}
		return
	}
	decoder := yaml.NewDecoder(strings.NewReader(yamlText))
	documents := 0
	for {
		var document map[string]any
		if err := decoder.Decode(&document); err != nil {
			if documents == 0 {
				t.Errorf("%s: hint's YAML: %v\n%s", stop.Code, err, yamlText)
			}
			return
		}
		documents++
		checkWith(t, document)
	}
}

// checkWith checks that ReadInputs accepts the with: values that a hint suggests.
func checkWith(t *testing.T, node any) {
	t.Helper()
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			checkWith(t, item)
		}
	case map[string]any:
		with, _ := node["with"].(map[string]any)
		for name, value := range with {
			checkHint(t, Problem{Input: name, Hint: fmt.Sprintf("with:\n  %s: %v", name, value)})
		}
		for _, item := range node {
			checkWith(t, item)
		}
	}
}

func TestAdmitMatrix(t *testing.T) {
	lanetest.SkipShort(t)
	if len(matrix) != len(situations) {
		t.Fatalf("%d situations, %d rows", len(situations), len(matrix))
	}
	for _, name := range slices.Sorted(maps.Keys(matrix)) {
		for i, phase := range matrixPhases {
			t.Run(name+"/"+phase, func(t *testing.T) {
				e, r := situation(t, name)
				in := Inputs{Phase: phase, Plan: "plan.json", Findings: "findings.json", Model: "m"}
				if phase == PhaseFind {
					in.Provider = "openai"
				}
				if got, want := outcomeOfAdmit(t, r, e, in, goodFacts), matrix[name][i]; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
}

// A model is asked in a job that runs code only for branches of the same repository, and only if
// that job also posts the review.
func TestAdmitModelBesideCode(t *testing.T) {
	lanetest.SkipShort(t)
	for name := range situations {
		e, r := situation(t, name)
		in := Inputs{Phase: PhaseReview, Plan: "plan.json", Provider: "openai", Model: "m"}
		got, want := outcomeOfAdmit(t, r, e, in, goodFacts), matrix[name][slices.Index(matrixPhases[:], PhaseReview)]
		switch {
		case e.Name == "pull_request" && strings.Contains(name, "Dependabot"):
			want = "nothing"
		case want == "review":
			want = "action.model-beside-code"
		}
		if got != want || got == "review" {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		in.Findings = "findings.json"
		if got := outcomeOfAdmit(t, r, e, in, goodFacts); got != "action.two-reviewers" && got != "nothing" {
			t.Errorf("%s: findings and a model: %s", name, got)
		}
	}
}

// Code runs only where it is allowed: this is checked for all combinations, not for
// selected ones.
func TestAdmitNeverRunsForkCodeBesideWhatItMustNotSee(t *testing.T) {
	for name := range situations {
		e, r := situation(t, name)
		for _, phase := range append(matrixPhases[:], "", "all") {
			for bits := range 64 {
				facts := Facts{OIDC: bits&1 != 0, Root: bits&4 != 0, Sudo: bits&8 != 0}
				if bits&2 != 0 {
					facts.ClassicScopes = "repo"
				}
				in := Inputs{Phase: phase, Plan: "plan.json", Findings: "findings.json"}
				if bits&32 != 0 {
					in.Findings, in.Provider, in.Model = "", "openai", "m"
				}
				if bits&16 != 0 {
					in.Token = "ghp_x"
				}
				a, err := Admit(r, e, in, facts)
				if err != nil || !a.Phase.RunsCode() {
					continue
				}
				checkMayRun(t, name, e, in, a, facts)
			}
		}
	}
}

func checkMayRun(t *testing.T, name string, e Event, in Inputs, a Admission, facts Facts) {
	t.Helper()
	fork := strings.Contains(name, "fork") || strings.Contains(name, "unknown")
	switch {
	case e.Name == "workflow_run":
		t.Errorf("%s: code runs on workflow_run", name)
	case fork && (facts.OIDC || facts.ClassicScopes != "" || in.Token != ""):
		t.Errorf("%s: fork code runs with %+v and token %q", name, facts, in.Token)
	case in.Provider != "" && in.Phase == PhaseReview && (fork || a.Phase != ReviewAndReport):
		t.Errorf("%s: a model is asked beside the code", name)
	case fork && a.Phase != Run && a.Phase != Review:
		t.Errorf("%s: fork code runs in a job that reports", name)
	case !facts.Root && !facts.Sudo:
		t.Errorf("%s: code runs without root", name)
	case in.Phase == "" || in.Phase == "all":
		t.Errorf("%s: code runs in phase %q", name, in.Phase)
	}
}

func TestAdmitCode(t *testing.T) {
	tests := []struct {
		name, situation string
		change          func(*Runner, *Event, *Inputs, *Facts)
		want            string
	}{
		{"root", "pull_request, own", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { *f = Facts{Root: true} }, "run and report"},
		{"no root, no sudo", "pull_request, own", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { *f = Facts{} }, "runner.root"},
		{"arm64", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.Arch = "ARM64" }, "run and report"},
		{"arm", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.Arch = "ARM" }, "runner.arch"},
		{"unknown architecture", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.Arch = "" }, "runner.arch"},
		{"Windows", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.OS = "Windows" }, "runner.os"},
		{"macOS", "pull_request, fork", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.OS = "macOS" }, "runner.os"},
		{"Windows may report", "workflow_run, fork", func(r *Runner, _ *Event, _ *Inputs, f *Facts) { r.OS, *f = "Windows", Facts{OIDC: true} }, "report"},
		{"container job", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.Workspace = "/__w/r/r" }, "runner.container"},
		{"OIDC, own code", "pull_request, own", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { f.OIDC = true }, "run and report"},
		{"OIDC, fork", "pull_request, fork", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { f.OIDC = true }, "action.oidc"},
		{"OIDC, fork is gone", "pull_request, fork is gone", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { f.OIDC = true }, "action.oidc"},
		{"OIDC, fork by comment", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, f *Facts) { in.Phase, f.OIDC = PhaseRun, true }, "action.oidc"},
		{"OIDC, unknown", "issue_comment, unknown", func(_ *Runner, _ *Event, in *Inputs, f *Facts) { in.Phase, f.OIDC = PhaseRun, true }, "action.oidc"},
		{"personal token by scopes", "pull_request, fork", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { f.ClassicScopes = "repo" }, "action.personal-token"},
		{"personal token by prefix", "pull_request, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Token = "ghp_x" }, "action.personal-token"},
		{"fine-grained personal token", "pull_request, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Token = "github_pat_x" }, "action.personal-token"},
		{"a person's token of an app", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Phase, in.Token = PhaseRun, "ghu_x" }, "action.personal-token"},
		{"a person's token of an OAuth app", "pull_request, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Token = "gho_x" }, "action.personal-token"},
		{"the job's own token", "pull_request, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Token = "ghs_x" }, "run"},
		{"personal token, own code", "pull_request, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Token = "ghp_x" }, "run and report"},
		{"no plan", "pull_request, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Plan = " \n" }, "action.no-plan"},
		{"no findings", "pull_request, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Phase = PhaseReview }, "action.no-findings"},
		{"no findings after a comment", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Phase = PhaseReview }, "action.no-findings"},
		{"no model", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Phase, in.Provider = PhaseFind, "openai" }, "action.no-model"},
		{"no provider", "issue_comment, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Phase, in.Model = PhaseFind, "m" }, "action.no-model"},
		{"several rounds where nothing runs", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) {
			in.Phase, in.Provider, in.Model, in.MaxRounds = PhaseFind, "openai", "m", 2
		}, "action.rounds"},
		{"a model is asked without root", "issue_comment, fork", func(r *Runner, _ *Event, in *Inputs, f *Facts) {
			r.OS, in.Phase, in.Provider, in.Model, in.MaxRounds, *f = "macOS", PhaseFind, "openai", "m", 1, Facts{OIDC: true}
		}, "find"},
		{"a review needs no plan", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) {
			in.Phase, in.Plan, in.Findings = PhaseReview, "", "findings.json"
		}, "review"},
		{"OIDC in a review of a fork", "issue_comment, fork", func(_ *Runner, _ *Event, in *Inputs, f *Facts) {
			in.Phase, in.Findings, f.OIDC = PhaseReview, "findings.json", true
		}, "action.oidc"},
		{"a report needs no plan", "workflow_run, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Plan = "" }, "report"},
		{"a comment brings its plan", "issue_comment, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Plan = "" }, "run and report"},
		{"no phase", "pull_request, own", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Phase = "" }, "action.phase"},
		{"another repository", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.Repository = "mallory/x" }, "event.repository"},
		{"the repository in another case", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.Repository = strings.ToLower(r.Repository) }, "run and report"},
		{"another event", "pull_request, own", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.EventName = "pull_request_target" }, "event.name"},
		{"a run that waits for a maintainer", "workflow_run, fork", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.Run.Conclusion = "action_required" }, "nothing"},
		{"Dependabot elsewhere", "pull_request, Dependabot", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.SenderID = 5 }, "run"},
		{"a person on Dependabot's branch", "pull_request, Dependabot",
			func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.SenderID, e.SenderLogin = 21031067, "Codertocat" }, "run and report"},
		{"a merge queue's other commit", "merge_group", func(r *Runner, _ *Event, _ *Inputs, _ *Facts) { r.SHA = strings.Repeat("ab", 20) }, "event.mismatch"},
		{"OIDC in a merge queue", "merge_group", func(_ *Runner, _ *Event, _ *Inputs, f *Facts) { f.OIDC = true }, "action.oidc"},
		{"a person's token in a merge queue", "merge_group", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Token = "github_pat_x" }, "action.personal-token"},
		{"a merge queue without a plan", "merge_group", func(_ *Runner, _ *Event, in *Inputs, _ *Facts) { in.Plan = "" }, "action.no-plan"},
		{"a group that is gone", "merge_group", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.Action = "destroyed" }, "nothing"},
		{"a review that was edited", "review, own", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.Action = "edited" }, "nothing"},
		{"a review's comment that was edited", "review's comment, own", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.Action = "edited" }, "nothing"},
		{"Dependabot's review", "review, own", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.SenderID = 49699333 }, "nothing"},
		{"GHES, two jobs", "pull_request, own", func(r *Runner, _ *Event, in *Inputs, _ *Facts) {
			r.ServerURL, in.Phase, in.Upload = "https://github.example.com", PhaseRun, UploadAuto
		}, "runner.artifacts"},
		{"GHES, one job", "pull_request, own", func(r *Runner, _ *Event, in *Inputs, _ *Facts) {
			r.ServerURL, in.Upload = "https://github.example.com", UploadAuto
		}, "run and report"},
		{"GHES, own upload", "pull_request, own", func(r *Runner, _ *Event, in *Inputs, _ *Facts) {
			r.ServerURL, in.Phase, in.Upload = "https://github.example.com", PhaseRun, UploadFalse
		}, "run"},
		{"Enterprise Cloud", "pull_request, own", func(r *Runner, _ *Event, in *Inputs, _ *Facts) {
			r.ServerURL, in.Phase, in.Upload = "https://octo.ghe.com", PhaseRun, UploadAuto
		}, "run"},
		{"closed since", "pull_request, own", func(_ *Runner, e *Event, _ *Inputs, _ *Facts) { e.PR.State = "closed" }, "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, r := situation(t, tt.situation)
			in, facts := Inputs{Phase: PhaseAuto, Plan: "plan.json"}, goodFacts
			tt.change(&r, &e, &in, &facts)
			if got := outcomeOfAdmit(t, r, e, in, facts); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestUploads(t *testing.T) {
	for server, want := range map[string]bool{
		"https://github.com": true, "https://GitHub.com": true, "https://octo.ghe.com": true, "http://127.0.0.1:4010": true,
		"https://github.example.com": false, "https://ghe.com.example": false, "https://notgithub.com": false, "https://10.0.0.1": false,
	} {
		r := Runner{ServerURL: server}
		if (Inputs{Upload: UploadAuto}).UploadsArtifacts(r) != want || !(Inputs{Upload: UploadTrue}).UploadsArtifacts(r) || (Inputs{Upload: UploadFalse}).UploadsArtifacts(r) {
			t.Errorf("%s: want %t", server, want)
		}
	}
}

func TestRunOnlyIsSaid(t *testing.T) {
	for name, want := range map[string]string{
		"pull_request, fork": readOnlyReason, "pull_request, Dependabot": readOnlyReason, "workflow_dispatch, no pr": "no pull request is given, so there is no comment",
		"pull_request, own": "",
	} {
		e, r := situation(t, name)
		if a, err := Admit(r, e, Inputs{Phase: PhaseAuto, Plan: "p"}, goodFacts); err != nil || a.Reason != want {
			t.Errorf("%s: reason %q, error %v", name, a.Reason, err)
		}
	}
}

func TestRefusalOfTarget(t *testing.T) {
	var stop *proposal.StopError
	if !errors.As(refuseTarget(), &stop) || !strings.Contains(stop.Hint, "workflow_run:") || !strings.Contains(stop.Hint, "on: pull_request\n") {
		t.Fatalf("refusal %+v", stop)
	}
	checkRefusal(t, stop)
}

func TestPhaseRuns(t *testing.T) {
	if Phase(9).RunsCode() || Phase(-1).RunsCode() || Report.RunsCode() || Trigger.RunsCode() {
		t.Error("a phase that is none does something")
	}
}
