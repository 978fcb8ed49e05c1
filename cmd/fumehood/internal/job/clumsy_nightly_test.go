// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package job_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// A mistake is one that users make when they copy a workflow. It results in a
// stable code, a hint that says how to fix it, and nothing else.
type mistake struct {
	name    string
	event   string // "pull_request" if empty
	payload string // "pull_request.opened" if empty
	fork    bool
	base    map[string]string
	prepare func(world)
	change  func(map[string]any)
	env     []string

	code, hint string // in the log and in the summary
	ran        bool   // the plan was run nevertheless, and its artifact exists
	silent     bool   // nothing could be posted
}

func permitOnly(permissions ...string) func(world) {
	return func(w world) { w.SetPermissions(permissions...) }
}

func limitRequests(op string) func(world) {
	return func(w world) {
		w.GH.InjectFault(githubtest.Fault{Op: op, Kind: githubtest.PrimaryLimit, Count: -1, Delay: 40 * time.Minute})
	}
}

func planInput(document string) []string { return []string{"INPUT_PLAN=" + document} }

func houseRules(text string) map[string]string {
	return map[string]string{".github/fumehood/house.rego": text}
}

func setInputPR(pr string) func(map[string]any) {
	return func(p map[string]any) { p["inputs"] = map[string]any{"pr": pr} }
}

var mistakes = []mistake{
	{name: "no permissions at all", prepare: permitOnly(), code: "github.not-found", hint: "pull-requests: read", silent: true},
	{name: "contents not to be read", prepare: func(w world) { w.Git.RequireToken("", "another") }, code: "checkout.", hint: "contents: read"},
	{name: "comments not to be written", prepare: permitOnly("contents:read", "pull_requests:read"), code: "github.permission", hint: "pull-requests: write", ran: true, silent: true},
	{name: "checks not to be written", env: []string{"INPUT_CHECK_RUN=true"}, code: "github.permission", hint: "checks: write", ran: true},
	{name: "an empty token", env: []string{"INPUT_GITHUB_TOKEN="}, code: "input.token", hint: "remove the input", silent: true},
	{name: "an expired token", env: []string{"INPUT_GITHUB_TOKEN=ghs_Bad0000000000000000000000000000000"}, code: "github.permission", hint: "expired", silent: true},
	{name: "no request left", prepare: limitRequests(""), code: "github.rate-limit", hint: "try again after", silent: true},
	{name: "no request left for the comment", prepare: limitRequests("issues/create-comment"), code: "github.rate-limit", hint: "try again after", ran: true, silent: true},

	{name: "pull_request_target", event: "pull_request_target", code: "event.pull-request-target", hint: "phase: report", silent: true},
	{name: "a release", event: "release", env: []string{"INPUT_UNSUPPORTED_EVENT=error"}, code: "event.unsupported", hint: "github.event_name == 'pull_request'", silent: true},
	{name: "a number with a hash", event: "workflow_dispatch", payload: "workflow_dispatch", change: setInputPR("#2"), code: "event.input", hint: "number alone", silent: true},
	{name: "a number of nothing", event: "workflow_dispatch", payload: "workflow_dispatch", change: setInputPR("77"), code: "github.not-found", hint: "check that it exists", silent: true},
	{name: "a container", env: []string{"GITHUB_WORKSPACE=/__w/x/x"}, code: "runner.container", hint: "remove container:", silent: true},
	{name: "macOS", env: []string{"RUNNER_OS=macOS"}, code: "runner.os", hint: "runs-on: ubuntu", silent: true},
	{name: "the bot's phase", env: []string{"INPUT_PHASE=trigger"}, code: "action.phase", hint: "phase: auto", silent: true},
	{name: "the report's phase in the only job", env: []string{"INPUT_PHASE=report"}, code: "report.missing", hint: "remove phase"},

	{name: "yes for true", env: []string{"INPUT_CHECK_RUN=yes"}, code: "input.invalid", hint: "check-run: false", silent: true},
	{name: "a login for an id", env: []string{"INPUT_ALLOWED_BOTS=claude[bot]"}, code: "input.invalid", hint: "give the bot's number", silent: true},
	{name: "minutes without a unit", env: []string{"INPUT_TIMEOUT=10"}, code: "input.invalid", hint: "timeout: 20m", silent: true},
	{name: "a limit that is none", env: []string{"INPUT_LIMITS=ram=4GiB"}, code: "input.invalid", hint: "limits", silent: true},
	{name: "an image", env: []string{"INPUT_ROOTFS=image:node:20"}, code: "input.invalid", hint: "rootfs: host", silent: true},
	{name: "a name with a blank", env: []string{"INPUT_NAME=unit tests"}, code: "input.invalid", hint: "name: unit-tests", silent: true},
	{name: "a folder that the commit has not", env: []string{"INPUT_WORKING_DIRECTORY=services/api"}, code: "input.working-directory", hint: "relative to the top"},
	{name: "a checkout that no step made", env: []string{"INPUT_CHECKOUT=src"}, code: "checkout.not-a-checkout", hint: "have fumehood do it"},

	{name: "no plan", env: planInput(""), code: "action.no-plan", hint: "plan:", silent: true},
	{name: "a plan that no step wrote", env: planInput("plan.json"), code: "plan.unreadable", hint: "schema: fumehood.plan/v1"},
	{name: "a command for a plan", env: planInput("npm test"), code: "plan.unreadable", hint: "schema: fumehood.plan/v1"},
	{name: "a folder for a plan", env: planInput("."), code: "plan.unreadable", hint: "schema: fumehood.plan/v1"},
	{name: "a list of commands for a plan", env: planInput("npm test\nnpm run lint\n"), code: "plan.invalid", hint: "schema: fumehood.plan/v1"},
	{name: "a field that is none", env: planInput("schema: fumehood.plan/v1\nproposal:\n  - {id: a, run: ls}\n"), code: "plan.invalid", hint: "plan:2:1"},
	{name: "a plan without proposals", env: planInput(`{"schema":"fumehood.plan/v1","proposals":[]}`), code: "plan.invalid", hint: "at least one"},

	{name: "a policy folder that is not there", env: []string{"INPUT_POLICY=polcy"}, code: "policy.missing", hint: "spelling"},
	{name: "a policy file for a folder", base: map[string]string{"house.rego": "package x\n"}, env: []string{"INPUT_POLICY=house.rego"}, code: "policy.missing", hint: "name the directory"},
	{name: "Rego that does not parse", base: houseRules("package fumehood.command\n\ndeny contains x if { foo( }\n"), code: "policy.compile", hint: "house.rego:3"},
	{name: "Rego with a field misspelt", base: houseRules("package fumehood.command\n\ndeny contains {\"rule\": \"a\", \"message\": \"b\"} if input.comand.program == \"x\"\n"), code: "policy.compile", hint: "comand"},
	{name: "Rego of the old kind", base: houseRules("package fumehood.command\n\ndeny[x] { x := 1 }\n"), code: "policy.compile", hint: "`contains`"},
}

// Every mistake has one code, shown in the log, the summary and, if possible, the
// comment. The conclusion is "error". Nothing runs that should not; the results of
// what ran are kept.
func TestNightlyActionClumsy(t *testing.T) {
	t.Parallel()
	for _, m := range sample.EveryNth(t, mistakes, 3, len(mistakes)) {
		t.Run(m.name, func(t *testing.T) {
			w := newWorld(t, m.fork, m.base, nil)
			s := m.act(w)
			if s.Code != cli.Stopped || s.Outputs["conclusion"] != "error" {
				t.Errorf("exit %d, outputs %q", s.Code, s.Outputs)
			}
			jobtest.CheckContains(t, "log", s.Log, "::error title=fumehood%3A "+m.code, m.hint)
			jobtest.CheckContains(t, "summary", s.Summary, m.code)
			if n := strings.Count(s.Log, "::error title=fumehood%3A "+m.code); n != 1 && m.code[len(m.code)-1] != '.' {
				t.Errorf("the code stands %d times in the log:\n%s", n, s.Log)
			}
			m.check(t, w, s)
		})
	}
}

// act prepares a world and runs the step in it.
func (m mistake) act(w world) jobtest.Step {
	w.T.Helper()
	if m.prepare != nil {
		m.prepare(w)
	}
	event, payload := cmp.Or(m.event, "pull_request"), cmp.Or(m.payload, "pull_request.opened")
	return w.RunStep(event, w.EventPayload(payload, m.change), append([]string{"INPUT_PLAN=" + jobtest.LookPlan}, m.env...)...)
}

func (m mistake) check(t *testing.T, w world, s jobtest.Step) {
	t.Helper()
	if ran := strings.Contains(s.Log, "fumehood: 1 succeeded"); ran != m.ran {
		t.Errorf("ran %t, want %t:\n%s", ran, m.ran, s.Log)
	}
	if _, err := os.Stat(filepath.Join(s.Outputs["artifact-path"], jobtest.ReportName)); m.ran && (err != nil || s.Outputs["artifact-path"] == "") {
		t.Errorf("what ran is lost: %v", err)
	}
	comments := w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)
	switch {
	case m.silent && len(comments) > 0:
		t.Errorf("a comment was posted:\n%s", comments[0].Body)
	case !m.silent && !m.ran:
		jobtest.CheckContains(t, "comment", w.BotComment().Body, m.code, "To fix it")
	}
	for what, said := range map[string]string{"log": s.Log, "summary": s.Summary} {
		for line := range strings.Lines(said) {
			if !strings.HasPrefix(line, "::add-mask::") && strings.Contains(line, w.Dir) {
				t.Errorf("the %s speaks of a folder of the runner's: %s", what, line)
			}
		}
	}
}

// If the results of a fork's run cannot be reported, the comment says why, whatever
// the reason.
func TestNightlyActionClumsyReport(t *testing.T) {
	t.Parallel()
	broken := houseRules("package fumehood.command\n\ndeny contains x if { foo( }\n")
	tests := []struct {
		name           string
		base           map[string]string
		run, report    []string
		prepare        func(world)
		code, hint     string
		silent, upload bool
	}{
		{name: "no artifact", run: []string{"INPUT_ARTIFACT="}, code: "report.missing", hint: "input artifact may be empty"},
		{name: "an artifact of another name", run: []string{"INPUT_ARTIFACT=results"}, upload: true, code: "report.missing", hint: "differ from this job"},
		{name: "inputs that the run could not use", run: []string{"INPUT_MODE=enforced"}, code: "report.missing", hint: "run&#39;s log"},
		{name: "another policy folder", report: []string{"INPUT_POLICY=polcy"}, upload: true, code: "policy.missing", hint: "spelling"},
		{name: "a policy that does not compile", base: broken, upload: true, code: "policy.compile", hint: "fix these places"},
		{name: "actions not to be read", prepare: permitOnly("contents:read", "pull_requests:write"), upload: true, code: "github.not-found", hint: "actions: read", silent: true},
		{name: "comments not to be written", prepare: permitOnly("contents:read", "pull_requests:read", "actions:read"), upload: true, code: "github.permission", hint: "pull-requests: write", silent: true},
	}
	for _, test := range sample.EveryNth(t, tests, 3, len(tests)) {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, true, test.base, nil)
			w.SetPermissions("contents:read", "pull_requests:read")
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), append([]string{"INPUT_PLAN=" + jobtest.LookPlan}, test.run...)...)
			if test.upload {
				w.UploadArtifact(s, nil)
			}
			w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
			if test.prepare != nil {
				test.prepare(w)
			}
			r := w.RunReport(nil, test.report...)
			if r.Code != cli.Stopped || r.Outputs["conclusion"] != "error" {
				t.Errorf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
			}
			jobtest.CheckContains(t, "log", r.Log, "::error title=fumehood%3A "+test.code)
			jobtest.CheckContains(t, "summary", r.Summary, test.code, test.hint)
			if !test.silent {
				jobtest.CheckContains(t, "comment", w.BotComment().Body, test.code, test.hint)
			}
		})
	}
}

// Situations that look like mistakes but are not: the job is green, or fails only
// because of its commands.
func TestNightlyActionNoMistake(t *testing.T) {
	t.Parallel()
	set := func(f func(*githubtest.PR)) func(world) {
		return func(w world) { w.GH.ChangePullRequest(jobtest.PrNumber, f) }
	}
	tests := []struct {
		mistake
		conclusion, log string
		comment         bool
	}{
		{mistake{name: "a locked conversation", prepare: set(func(p *githubtest.PR) { p.Locked = true })}, "success", "locked", false},
		{mistake{name: "a draft", payload: "pull_request.opened.draft", prepare: set(func(p *githubtest.PR) { p.Draft = true })}, "success", "1 succeeded", true},
		{mistake{name: "a closed pull request", payload: "pull_request.closed"}, "skipped", "is closed", false},
		{mistake{name: "a deleted fork", fork: true, payload: "pull_request.opened.deletedfork", prepare: set(func(p *githubtest.PR) { p.Head.Repository = "-" })}, "success", "1 succeeded", false},
		{mistake{name: "Dependabot", payload: "pull_request.opened.dependabot"}, "success", "read-only", false},
		{mistake{name: "a fork in the one-job form", fork: true, payload: "pull_request.opened.fork"}, "success", "fumehood-report.yml", false},
		{mistake{name: "no pull request", event: "workflow_dispatch", payload: "workflow_dispatch.bare"}, "success", "no pull request is given", false},
		{mistake{name: "a pull request by number", event: "workflow_dispatch", payload: "workflow_dispatch"}, "success", "1 succeeded", true},
		{mistake{name: "no artifact", env: []string{"INPUT_ARTIFACT="}}, "success", "1 succeeded", true},
		{mistake{name: "no comment", env: []string{"INPUT_COMMENT=false"}}, "success", "1 succeeded", false},
		{mistake{name: "nothing fails", env: []string{"INPUT_FAIL_ON=never", "INPUT_PLAN=" + jobtest.GoodPlan}}, "failure", "conclusion: failure", true},
		{mistake{name: "nothing fails, not even fumehood", env: []string{"INPUT_FAIL_ON=never", "INPUT_PLAN=plan.json"}}, "error", "plan.unreadable", true},
		{mistake{name: "a folder of a monorepo", env: []string{"INPUT_WORKING_DIRECTORY=notes", "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: a, run: cat new.txt}\n"}}, "success", "two", true},
	}
	for _, test := range sample.EveryNth(t, tests, 3, len(tests)) {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.fork, nil, nil)
			s := test.act(w)
			if s.Code != cli.OK || s.Outputs["conclusion"] != test.conclusion {
				t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
			}
			jobtest.CheckContains(t, "log", s.Log, test.log)
			if posted := len(w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)) > 0; posted != test.comment {
				t.Errorf("posted %t, want %t\n%s", posted, test.comment, s.Log)
			}
			if test.conclusion != "skipped" && len(s.Summary) < 200 {
				t.Errorf("the summary says nothing: %q", s.Summary)
			}
		})
	}
}

// A command that cannot be carried out is answered with the reason, not left with
// only an eyes reaction. Comments that are not commands cost nothing.
func TestNightlyBotClumsy(t *testing.T) {
	t.Parallel()
	broken := houseRules("package fumehood.command\n\ndeny contains x if { foo( }\n")
	usage := "/fumehood approve <digits>"
	tests := []struct {
		name, body string
		base       map[string]string
		permit     []string
		env        []string
		code       int
		answer     []string // in the comment; if empty, there is no comment
	}{
		{name: "a command that is none", body: "/fumehood rum ls", answer: []string{"unknown command", usage}},
		{name: "no command", body: "/fumehood", answer: []string{"requires a command", usage}},
		{name: "approve without digits", body: "/fumehood approve", answer: []string{"nothing has run", usage}},
		{name: "approve with too few digits", body: "/fumehood approve abc1234", answer: []string{"8 to 64", "abc1234"}},
		{name: "approve before anything ran", body: "/fumehood approve 0123456789ab", answer: []string{"nothing has run"}},
		{name: "rerun before anything ran", body: "/fumehood rerun", answer: []string{"nothing has run"}},
		{name: "explain before anything ran", body: "/fumehood explain unit", answer: []string{"nothing has run"}},
		{name: "a block of another language", body: "/fumehood run\n```yaml\nproposals: []\n```\n", answer: []string{"```fumehood", usage}},
		{name: "a plan that is wrong", body: "/fumehood run\n```fumehood\nschema: fumehood.plan/v9\nproposals:\n- {id: a, cmd: ls}\n```\n", answer: []string{"the whole plan was rejected", "1:9"}},
		{name: "a plan without a valid proposal", body: "/fumehood run\n```fumehood\nschema: fumehood.plan/v1\nproposals:\n- {id: a, cmd: ls}\n```\n", answer: []string{"no proposal of the plan is valid", "3:3"}},
		{name: "a command in backticks", body: "/fumehood run `ls`", answer: []string{"remove the backticks"}},
		{name: "a command below some words", body: "Please\n/fumehood run ls"},
		{name: "another word", body: "@fumehood run ls"},
		{name: "a policy that does not compile", body: "/fumehood run ls", base: broken, code: cli.Stopped, answer: []string{"Nothing was started", "policy.compile", "house.rego:3"}},
		{name: "actions not to be read", body: "/fumehood run ls", permit: []string{"contents:read", "pull_requests:write"}, code: cli.Stopped, answer: []string{"Nothing was started", "actions: read"}},
		{name: "the run job without a request", body: "/fumehood run ls", env: []string{"INPUT_PHASE=run"}, code: cli.Stopped},
	}
	for _, test := range sample.EveryNth(t, tests, 3, len(tests)) {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, false, test.base, nil)
			if test.permit != nil {
				w.SetPermissions(test.permit...)
			}
			s := w.AskBot("Codertocat", test.body, test.env...)
			if s.Code != test.code || strings.Contains(s.Log, "running ") {
				t.Errorf("exit %d\n%s", s.Code, s.Log)
			}
			if len(test.answer) > 0 {
				jobtest.CheckContains(t, "comment", w.BotComment().Body, test.answer...)
			} else if n := len(w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)); n > 0 {
				t.Errorf("%d comments were posted:\n%s", n, s.Log)
			}
		})
	}
}

// A job that is run again updates the same comment.
func TestNightlyActionSecondAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil))
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 failed")
	w.RunID--
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "GITHUB_RUN_ATTEMPT=2", "INPUT_PLAN="+jobtest.LookPlan)
	if s.Code != cli.OK {
		t.Errorf("exit %d\n%s", s.Code, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "fumehood: 1 succeeded")
}

// THREATS 90: a run that is run again keeps the evidence of its first attempt, and its results
// are those of the newest attempt, whatever another job uploaded under the name before.
func TestNightlyActionAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.SetPermissions("contents:read", "pull_requests:read")
	first := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil))
	w.UploadArtifact(first, nil)
	w.GH.AddArtifact(githubtest.Artifact{Run: w.RunID, Name: "fumehood-fumehood@2", Data: []byte("a squatter's"), Created: w.Now().Add(-time.Hour)})
	w.Ahead.Store(int64(time.Hour))
	started := w.Now()
	w.RunID--
	second := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "GITHUB_RUN_ATTEMPT=2", "INPUT_PLAN="+jobtest.LookPlan, "INPUT_RETENTION_DAYS=90")
	if first.Outputs["artifact-name"] != "fumehood-fumehood" || second.Outputs["artifact-name"] != "fumehood-fumehood@2" {
		t.Fatalf("names %q and %q", first.Outputs["artifact-name"], second.Outputs["artifact-name"])
	}
	if first.Outputs["retention-days"] != "7" || second.Outputs["retention-days"] != "90" {
		t.Errorf("kept for %s and %s days", first.Outputs["retention-days"], second.Outputs["retention-days"])
	}
	w.GH.AddRun(githubtest.Run{ID: w.RunID, Attempt: 2, HeadSHA: w.Head, HeadRepository: jobtest.ForkRepo, Started: started})
	again := func(payload map[string]any) { payload["workflow_run"].(map[string]any)["run_attempt"] = 2 }
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	s := w.RunReport(again) // the job's upload failed: its first attempt counts, not the squatter
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 failed")
	jobtest.CheckContains(t, "log", s.Log, "fumehood-fumehood@2", "not uploaded in the attempt that it names")
	w.UploadArtifact(second, nil)
	w.AdvanceClock() // the job that reports is run again
	w.RunReport(again)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "own run reports: 1 succeeded")
	// In a later attempt another job takes the first attempt's name. What was evidence is gone, and not replaced.
	w.UploadArtifact(first, func(files map[string][]byte) { clear(files) })
	w.RunReport(again)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "own run reports: 1 succeeded")
}

// A pull request without changes, and one with more files than the API lists.
func TestNightlyActionSizes(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 3200 {
		many[fmt.Sprintf("many/%04d.txt", i)] = "x\n"
	}
	for name, head := range map[string]map[string]string{"nothing": {"greet.sh": jobtest.BaseFiles["greet.sh"]}, "many files": many} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false, nil, head)
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan)
			if s.Code != cli.OK {
				t.Errorf("exit %d\n%s", s.Code, s.Log)
			}
			jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 succeeded")
		})
	}
}
