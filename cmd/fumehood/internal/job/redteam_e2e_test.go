// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/job"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits of the artifacts that are read again.
const (
	maxArtifacts = 16
	maxLog       = 128 << 20
	maxZipFiles  = 10_000
)

// A forgery is a consistent bundle with false content: fumehood itself made it,
// from facts other than the job's.
type forgery struct {
	about func(*gate.Subject)
	plan  string
	rules map[string]string // the rules that the forger uses as the repository's policy
	nth   int               // distinguishes runs that are equal except for their logs
}

// A bundle is the content of an artifact.
type bundle struct {
	once  sync.Once
	files map[string][]byte
}

var forgeries sync.Map // by the forgery and the facts

// forge makes the files of an artifact, as a stranger's workflow could. The same
// facts give the same bundle.
func (w world) forge(f forgery) map[string][]byte {
	w.T.Helper()
	a := gate.Subject{Repository: jobtest.Hub, Fork: jobtest.ForkRepo, PR: jobtest.PrNumber, HeadSHA: w.Head, BaseSHA: w.Base}
	if f.about != nil {
		f.about(&a)
	}
	facts, err := json.Marshal(a)
	if err != nil {
		w.T.Fatal(err)
	}
	made, _ := forgeries.LoadOrStore(fmt.Sprint(string(facts), f.plan, f.rules, f.nth), &bundle{})
	b := made.(*bundle)
	b.once.Do(func() { b.files = w.runForged(f, a) })
	if b.files == nil {
		w.T.Fatal("the test that forged this failed")
	}
	return maps.Clone(b.files)
}

func (w world) runForged(f forgery, subject gate.Subject) map[string][]byte {
	w.T.Helper()
	dir := w.T.TempDir()
	files := jobtest.MergeFiles(jobtest.HeadFiles, map[string]string{"../plan": f.plan})
	for name, text := range f.rules {
		files["../rules/"+filepath.Base(name)] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, "workspace", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.T.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.T.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		w.T.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	s := runspec.Spec{Subject: subject, Plan: at("plan"), Workspace: at("workspace"), Rootfs: "host", Tools: os.Getenv("PATH"), Artifacts: at("files"),
		AuditFile: at(jobtest.AuditName), Report: at(jobtest.ReportName)}
	if f.rules != nil {
		s.Restricting = []string{at("rules")}
	}
	document, err := s.EncodeLine()
	if err != nil {
		w.T.Fatal(err)
	}
	cmd := exec.Command(w.Binary, "run", "--job")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "FUMEHOOD_CACHE=" + w.Cache}
	stdin, err := cmd.StdinPipe() // stays open until the end
	if err != nil {
		w.T.Fatal(err)
	}
	go stdin.Write(document)
	out, _ := cmd.CombinedOutput() // its files say more than its exit code
	bundle := map[string][]byte{}
	for _, name := range []string{jobtest.PlanName, jobtest.AuditName, jobtest.ReportName} {
		var err error
		if bundle[name], err = os.ReadFile(at(name)); err != nil {
			w.T.Fatalf("%v\n%s", err, out)
		}
	}
	return bundle
}

// plant makes the files an artifact of a run of the pull request's code.
func (w world) plant(name string, files map[string][]byte) int64 {
	w.T.Helper()
	w.AddRun("pull_request", "success")
	return w.GH.AddArtifact(githubtest.Artifact{Run: w.RunID, Name: name, Data: jobtest.ZipFiles(w.T, files)})
}

// THREATS 9, 27: a fork's own run claims that a maintainer approved it. Only the
// bot's request makes an approval.
func TestE2EActionForgedApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	honest := w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule})
	var shown proposal.Report
	if err := json.Unmarshal(honest[jobtest.ReportName], &shown); err != nil {
		t.Fatal(err)
	}
	w.plant("fumehood", w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule, about: func(a *gate.Subject) {
		a.Approval = &proposal.Approval{By: "Codertocat", ByID: 21031067, URL: "https://github.com/" + jobtest.Hub + "/pull/2#issuecomment-1", Time: time.Now().UTC().Truncate(time.Second),
			HeadSHA: w.Head, PlanDigest: shown.Run.PlanDigest, Policy: shown.Run.Policy}
	}}))
	r := w.RunReport(nil)
	if r.Outputs["conclusion"] != "error" {
		t.Errorf("outputs %q\n%s", r.Outputs, r.Log)
	}
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "report.malformed")
	jobtest.CheckLacks(t, "comment", body, "<code>Codertocat</code>", "approved by", "2 succeeded", "was verified", "sealed")
}

// THREATS 16: the workspace may be a checkout of the pull request, so the path of a
// plan in it may lead anywhere: to a file of the runner, to fumehood's environment,
// or to a file that never ends.
func TestE2EActionPlanPathStaysInTheWorkspace(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(secret, []byte(jobtest.LookPlan), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(path string) error{
		"a link to a file outside":  func(path string) error { return os.Symlink(secret, path) },
		"a link to our environment": func(path string) error { return os.Symlink("/proc/self/environ", path) },
		"a link to a device":        func(path string) error { return os.Symlink("/dev/zero", path) },
		"a link up and out":         func(path string) error { return os.Symlink("../../../../../../../../.."+secret, path) },
		"a pipe":                    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":                  func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to a link outside": func(path string) error {
			return errors.Join(os.Symlink("two", path), os.Symlink(secret, filepath.Join(filepath.Dir(path), "two")))
		},
		"a link to itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
	}
	w := newWorld(t, false, nil, nil)
	for _, name := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		place := tests[name]
		for _, input := range []string{"pr/plan.yaml", "absolute"} {
			t.Run(name+", "+input, func(t *testing.T) {
				cmd, s := w.Start("pull_request", w.EventPayload("pull_request.opened", nil))
				path := filepath.Join(s.Temp, "workspace", "pr", "plan.yaml")
				if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), place(path)); err != nil {
					t.Fatal(err)
				}
				if input == "absolute" {
					input = path
				}
				cmd.Env = append(cmd.Env, "INPUT_PLAN="+input)
				s = w.end(cmd, s)
				if s.Code != cli.Stopped {
					t.Errorf("exit %d\n%s", s.Code, s.Log)
				}
				jobtest.CheckContains(t, "log", s.Log, "plan.unreadable")
				jobtest.CheckLacks(t, "log", strings.ReplaceAll(s.Log, "::add-mask::"+jobtest.JobToken, ""), "INPUT_", jobtest.JobToken, "running")
			})
		}
	}
}

// end waits for a step that was prepared, and fails if it hangs.
func (w world) end(cmd *exec.Cmd, s jobtest.Step) jobtest.Step {
	w.T.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	timer := time.AfterFunc(jobtest.Hang, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !timer.Stop() {
		w.T.Errorf("the step did not end within %s:\n%s", jobtest.Hang, log.String())
	}
	return w.FinishStep(s, cmd.ProcessState.ExitCode(), log.String())
}

// THREATS 27: a forged artifact that was refused is not reported, explained or run
// in other ways.
func TestE2EBotTellsNothingOfWhatWasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.Fork = true // of the run, so that its artifact is a stranger's
	forged := w.forge(forgery{plan: "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat secrets.txt}\n", about: func(a *gate.Subject) { a.PR = 3 }})
	w.Fork = false
	w.plant("fumehood", forged)
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "report.malformed")
	w.RunID += 10
	for _, wish := range []string{"/fumehood explain look", "/fumehood rerun"} {
		w.AdvanceClock()
		s := w.AskBot("Codertocat", wish)
		if s.Outputs["allowed"] != "0" {
			t.Errorf("%s: outputs %q\n%s", wish, s.Outputs, s.Log)
		}
		jobtest.CheckLacks(t, "comment", w.BotComment().Body, "secrets.txt")
	}
}

// THREATS 25, 27: explain uses the words of this repository's policy, never those
// of a policy that the pull request's own run used instead.
func TestE2EBotExplainsInItsOwnWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	mine := "package fumehood.command\n\n# METADATA\n# title: Mine\nask contains {\"rule\": \"house.sort\", \"message\": \"Reviewed by the maintainers and found to be harmless please merge\", \"suggestion\": \"merge it\"} if {\n\tinput.command.program == \"sort\"\n}\n"
	w.plant("fumehood", w.forge(forgery{plan: jobtest.AskPlan, rules: map[string]string{"ask.rego": mine}}))
	w.RunReport(nil)
	body := w.BotComment().Body
	jobtest.CheckContains(t, "comment", body, "policy other than", "Not confirmed")
	jobtest.CheckLacks(t, "comment", body, "/fumehood approve")
	w.RunID += 10
	w.AdvanceClock()
	w.AskBot("Codertocat", "/fumehood explain order", "INPUT_PHASE=trigger")
	notice, _, _ := strings.Cut(w.BotComment().Body, "<!-- fumehood:results -->")
	jobtest.CheckLacks(t, "notice", notice, "Reviewed by the maintainers", "please merge")
	w.AdvanceClock()
	s := w.AskBot("Codertocat", "/fumehood approve 3fa2b91c", "INPUT_PHASE=trigger")
	if s.Outputs["run"] != "false" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
}

// THREATS 27: many artifacts do not prevent the comment from saying so.
func TestE2EActionTooManyArtifacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	bundle := w.forge(forgery{plan: jobtest.LookPlan})
	for i := range maxArtifacts + 1 {
		w.plant(fmt.Sprintf("fumehood-%d", i), bundle)
	}
	r := w.RunReport(nil)
	if r.Code == cli.OK || r.Outputs["conclusion"] != "error" {
		t.Errorf("exit %d, outputs %q\n%s", r.Code, r.Outputs, r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "report.too-many")
}

// THREATS 9: a person must not approve what they have not seen. Commands that the comment
// cannot show in full are not offered for approval, since the rest would be hidden.
func TestE2EActionAsksOnlyWhatItShowsWhole(t *testing.T) {
	t.Parallel()
	long := "sort " + strings.Repeat("notes/new.txt ", 350) + "hidden-in-the-middle.txt" + strings.Repeat(" notes/new.txt", 350)
	many := "schema: fumehood.plan/v1\nproposals:\n"
	for i := range 90 {
		many += fmt.Sprintf("  - {id: p%d, run: sort notes/new.txt %s hidden-%d.txt}\n", i, strings.Repeat("README.md ", 80), i)
	}
	const few = jobtest.AskPlan + `  - {id: input, run: sort, stdin: given words}
  - {id: environment, run: sort README.md, env: {LC_ALL: surroundings}}
  - {id: files, run: sort README.md, outputs: [wanted.txt]}
`
	tests := map[string]struct {
		plan  string
		shown []string // if empty, it is not offered
	}{
		"a long command": {"schema: fumehood.plan/v1\nproposals:\n  - {id: order, run: " + long + "}\n", nil},
		"many commands":  {many, nil},
		"few commands":   {few, []string{"sort notes/new.txt", "given words", "surroundings", "wanted.txt"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false, jobtest.AskRule, nil)
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+test.plan)
			if s.Outputs["conclusion"] != "asked" {
				t.Fatalf("outputs %q\n%s", s.Outputs, s.Log)
			}
			body := w.BotComment().Body
			command := jobtest.ApprovalShown.FindString(body)
			offered := command != ""
			if offered != (test.shown != nil) {
				t.Errorf("offered %t", offered)
			}
			jobtest.CheckContains(t, "the comment that asks to approve", body, test.shown...)
			w.UploadArtifact(s, nil)
			w.AdvanceClock()
			a := w.AskBot("Codertocat", cmp.Or(command, "/fumehood approve 3fa2b91c"))
			if ran := a.Outputs["allowed"] != "0"; ran != offered {
				t.Errorf("ran %t, though it was offered %t\n%s", ran, offered, a.Log)
			}
		})
	}
}

// THREATS 12, 13: the program that runs as root inherits nothing of the job: no
// variable and no file descriptor.
func TestE2EActionRootChildHoldsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	canary := "canary-51c7d28f3a"
	secret := filepath.Join(t.TempDir(), canary)
	if err := os.WriteFile(secret, []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(secret)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd, s := w.Start("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: slow, run: sleep 100000}\n",
		"ACTIONS_RUNTIME_TOKEN="+canary, "INPUT_ORGANIZATION_TOKEN="+canary, "LD_PRELOAD=", "GIT_SSH_COMMAND="+canary, "BASH_ENV="+canary, "GODEBUG=netdns=go", "NODE_OPTIONS="+canary)
	cmd.ExtraFiles = []*os.File{f} // as from a runner that leaks one
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForProgram(t, s.Temp, "slow")
	found := 0
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		child := bytes.Contains(line, []byte("--job")) && bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", cmd.Process.Pid))
		if !child && !bytes.Contains(line, []byte(s.Temp)) && !bytes.Contains(line, []byte("runsc")) || strings.HasSuffix(dir, fmt.Sprint("/", cmd.Process.Pid)) {
			continue
		}
		if child {
			found++
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		for _, word := range []string{canary, jobtest.JobToken, "GITHUB_", "INPUT_", "ACTIONS_", "RUNNER_"} {
			if bytes.Contains(environ, []byte(word)) || bytes.Contains(line, []byte(canary)) || bytes.Contains(line, []byte(jobtest.JobToken)) {
				t.Errorf("%q is with %q", word, bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
			}
		}
		fds, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); strings.Contains(to, canary) {
				t.Errorf("descriptor %s leads to %s in %q", filepath.Base(fd), to, bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
			}
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
	if found == 0 {
		t.Errorf("no child was seen\n%s", log.String())
	}
}

// THREATS 22, 25: names that a stranger chooses are never Markdown, workflow
// commands or mentions, wherever they appear.
func TestE2EActionHostileNames(t *testing.T) {
	t.Parallel()
	evil := "a]: @everyone #1 <img src=x onerror=1> `x` ::error::forged %0A::warning::forged \u202e txt.exe"
	w := newWorld(t, true, map[string]string{".github/workflows/ci.yml": "on: push\n"}, map[string]string{
		".github/workflows/" + evil + "\n::error::forged\n.yml":      "x\n",
		".github/workflows/\" @everyone <b>bold</b> fixes #1 \".yml": "x\n",
		evil: "x\n", "notes/::error::forged": "x\n", "-rf": "x\n",
	})
	plan := `{"schema":"fumehood.plan/v1","proposer":"@everyone <script> ::error::forged\u00a0","proposals":[` +
		`{"id":"names","run":"find . -type f","why":"@everyone fixes #1 <img src=x> ![x](http://evil.example/x.png) <!-- fumehood:results -->","expect":"**bold** @everyone"}]}`
	w.SetPermissions("contents:read", "pull_requests:read")
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", func(p map[string]any) {
		pr := p["pull_request"].(map[string]any)
		pr["title"], pr["body"] = "::error::forged\n::add-mask::a", "@everyone\n::stop-commands::x"
		pr["head"].(map[string]any)["ref"] = "feature/$(id)`id`&@everyone"
	}), "INPUT_PLAN="+plan)
	w.UploadArtifact(s, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	r := w.RunReport(nil)
	for what, log := range map[string]string{"run": s.Log, "report": r.Log} {
		for line := range strings.Lines(log) {
			if strings.HasPrefix(strings.TrimLeft(line, " \t"), "::error::forged") || strings.HasPrefix(line, "::warning::forged") || strings.Contains(line, "##[") || strings.Contains(line, "\u202e") {
				t.Errorf("%s: the log has the line %q", what, line)
			}
		}
	}
	for what, text := range map[string]string{"comment": w.BotComment().Body, "summary": s.Summary, "report's summary": r.Summary} {
		jobtest.CheckLacks(t, what, text, "<img", "<script", "\u202e", "\n::")
		jobtest.CheckLacks(t, what, jobtest.RemoveCode(text), "bold")
		jobtest.CheckLacks(t, what, jobtest.RemoveCode(text), "@everyone", "#1", "forged", "](http")
	}
	if marks := strings.Count(w.BotComment().Body, "<!-- fumehood:results -->"); marks != 1 {
		t.Errorf("%d marks of results", marks)
	}
}

// THREATS 25, 26: a command that prints fumehood's own comment, including marks and
// state, changes neither the state nor the parts of the comment.
func TestE2EActionOutputForgesTheComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan)
	ours := w.BotComment().Body
	state := strings.Split(ours, "\n")[1]
	forged := strings.ReplaceAll(state, `"said":"success"`, `"said":"failure"`)
	forged = strings.ReplaceAll(forged, `"run":`, `"run":9`)
	hostile := "```\n" + strings.ReplaceAll(ours, state, forged) + "\n<!-- fumehood:notice -->\n/fumehood run id\n```fumehood\n" + jobtest.GoodPlan + "```\n<!-- fumehood:results -->\nAll is well\n"
	w2 := newWorld(t, false, nil, map[string]string{"hostile.md": hostile, "r.md": strings.ReplaceAll(hostile, "\n", "\r")})
	plan := "schema: fumehood.plan/v1\nproposals:\n  - {id: print, run: cat hostile.md r.md}\n"
	w2.RunStep("pull_request", w2.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan)
	body := w2.BotComment().Body
	lines := strings.Split(body, "\n")
	for _, mark := range []string{"<!-- fumehood:notice -->", "<!-- fumehood:results -->", "<!-- fumehood:report -->", "<!-- fumehood:state "} {
		if n := strings.Count(body, mark); n != 1 {
			t.Errorf("%d times %s in:\n%s", n, mark, body)
		}
	}
	if lines[0] != "<!-- fumehood:report -->" || !strings.HasPrefix(lines[1], "<!-- fumehood:state ") || strings.Contains(lines[1], `"run":9`) {
		t.Errorf("it begins %q", lines[:2])
	}
	// The bot's own comment is not a command, even if the bot is allowed to propose.
	id := w2.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)[0].ID
	s := w2.RunStep("issue_comment", w2.CommentEvent(id), "INPUT_ALLOWED_BOTS=41898282")
	if s.Outputs["conclusion"] != "skipped" || s.Outputs["allowed"] != "0" {
		t.Errorf("our own comment started something: %q\n%s", s.Outputs, s.Log)
	}
}

// THREATS 9: the head may move between any two requests to the API. Nothing of
// another commit runs, and what ran is reported with its own commit.
func TestE2EActionHeadMovesBetweenAnyRequests(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprint("before reading it for the ", n, ". time"), func(t *testing.T) {
			w := newWorld(t, false, nil, nil)
			repo := filepath.Join(w.Dir, "git", jobtest.Hub+".git")
			late := w.Commit(repo, "pushed", w.Head, jobtest.MergeFiles(jobtest.BaseFiles, jobtest.HeadFiles, map[string]string{"README.md": "surprise\n"}))
			w.GitIn(repo, "update-ref", fmt.Sprintf("refs/pull/%d/head", jobtest.PrNumber), late)
			seen := 0
			w.GH.BeforeRequest("pulls/get", func(*http.Request) {
				if seen++; seen == n {
					w.GH.MoveHead(jobtest.PrNumber, late)
				}
			})
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan)
			jobtest.CheckLacks(t, "log", s.Log, "surprise")
			jobtest.CheckLacks(t, "summary", s.Summary, "surprise")
			if s.Code != cli.OK {
				t.Errorf("exit %d\n%s", s.Code, s.Log)
			}
			for _, c := range w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot) {
				jobtest.CheckLacks(t, "comment", c.Body, "surprise")
				jobtest.CheckContains(t, "comment", c.Body, w.Head[:12])
				if seen > n {
					jobtest.CheckContains(t, "comment", c.Body, "newer commit", late[:12])
				}
			}
		})
	}
}

// THREATS 9: a push between the check of a request and its run stops the run, with
// three jobs and with one.
func TestE2EBotHeadMovesAfterTheTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood run cat README.md")
	payload := w.CommentEvent(id)
	trigger := w.RunStep("issue_comment", payload, "INPUT_PHASE=trigger")
	w.GH.MoveHead(jobtest.PrNumber, githubtest.CommitID("pushed"))
	w.SetPermissions("contents:read", "pull_requests:read")
	w.RunID--
	ran := w.RunStep("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.Outputs["request"])
	if ran.Code != cli.Stopped || ran.Outputs["allowed"] != "0" {
		t.Errorf("exit %d, outputs %q\n%s", ran.Code, ran.Outputs, ran.Log)
	}
	jobtest.CheckContains(t, "log", ran.Log, "head.moved")
	w.UploadArtifact(ran, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	w.RunID--
	told := w.RunStep("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.Outputs["request"])
	if told.Outputs["conclusion"] != "error" {
		t.Errorf("outputs %q\n%s", told.Outputs, told.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "head.moved", "newer commit")
}

// THREATS 9, 23: a request that was not made by a trigger job starts nothing.
func TestE2EBotForgedRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood run cat README.md")
	payload := w.CommentEvent(id)
	good := w.RunStep("issue_comment", payload, "INPUT_PHASE=trigger").Outputs["request"]
	tests := map[string]string{
		"cut short":          good[:len(good)/2],
		"two of them":        good + good,
		"another number":     strings.Replace(good, `"pr":2`, `"pr":3`, 1),
		"no number":          strings.Replace(good, `"pr":2`, `"pr":0`, 1),
		"another comment":    strings.Replace(good, fmt.Sprint(id), fmt.Sprint(id+1), 1),
		"a branch":           strings.Replace(good, w.Head, "changes", 1),
		"part of a commit":   strings.Replace(good, w.Head, w.Head[:12], 1),
		"another commit":     strings.Replace(good, w.Head, w.Base, 1),
		"a field of its own": strings.Replace(good, `"pr":2`, `"pr":2,"policy":"none"`, 1),
		"no plans":           regexp.MustCompile(`"plans":\[.*\]`).ReplaceAllString(good, `"plans":[]`),
		"text":               "approve all",
		"null":               "null",
		"none":               "",
	}
	w.SetPermissions("contents:read", "pull_requests:read")
	for _, name := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		request := tests[name]
		t.Run(name, func(t *testing.T) {
			s := w.RunStep("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+request)
			if s.Code == cli.OK && s.Outputs["conclusion"] != "skipped" || s.Outputs["allowed"] != "0" || strings.Contains(s.Log, "running") {
				t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
			}
		})
	}
}

// THREATS 9, 27: an approval in a request for another commit, plan or policy runs
// nothing.
func TestE2EBotForgedApprovalInARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	bundle := w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule})
	var shown proposal.Report
	if err := json.Unmarshal(bundle[jobtest.ReportName], &shown); err != nil {
		t.Fatal(err)
	}
	good := proposal.Approval{By: "Codertocat", ByID: 21031067, Time: time.Now().UTC(), HeadSHA: w.Head, PlanDigest: shown.Run.PlanDigest, Policy: shown.Run.Policy}
	zeros := "sha256:" + strings.Repeat("0", 64)
	tests := map[string]struct {
		change func(*proposal.Approval)
		runs   bool
	}{
		"the right one":  {func(*proposal.Approval) {}, true},
		"another commit": {func(a *proposal.Approval) { a.HeadSHA = w.Base }, false},
		"another plan":   {func(a *proposal.Approval) { a.PlanDigest = zeros }, false},
		"another policy": {func(a *proposal.Approval) { a.Policy = zeros }, false},
		"a prefix":       {func(a *proposal.Approval) { a.PlanDigest = a.PlanDigest[:20] }, false},
		"nothing in it":  {func(a *proposal.Approval) { a.PlanDigest, a.Policy, a.HeadSHA = "", "", "" }, false},
	}
	id := w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood approve 3fa2b91c")
	payload := w.CommentEvent(id)
	w.SetPermissions("contents:read", "pull_requests:read")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := good
			test.change(&a)
			r := job.Request{Command: "approve", PR: jobtest.PrNumber, Head: w.Head, Base: w.Base, Comment: id, Plans: []job.Planned{{Document: jobtest.AskPlan, File: "plan", Approval: &a}}}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			s := w.RunStep("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+string(text))
			if ran := s.Outputs["conclusion"] == "success"; ran != test.runs {
				t.Errorf("ran %t, want %t: %q\n%s", ran, test.runs, s.Outputs, s.Log)
			}
			if !test.runs {
				jobtest.CheckContains(t, "log", s.Log, "approval.void")
				jobtest.CheckLacks(t, "log", s.Log, "order: exit")
			}
		})
	}
}

// THREATS 9: the policy has changed since the approval was requested: a
// new approval is needed.
func TestE2EBotApproveAfterThePolicyChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	w.UploadArtifact(s, nil)
	rules := map[string]string{".github/fumehood/ask.rego": jobtest.AskRule[".github/fumehood/ask.rego"] + "\n# stricter\n"}
	w.Push("master", rules)
	w.AdvanceClock()
	a := w.AskBot("Codertocat", w.ApproveCommand())
	if a.Outputs["allowed"] != "0" {
		t.Errorf("outputs %q\n%s", a.Outputs, a.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "the policy has changed")

	// An approval requested in enforce mode is not valid for observe mode.
	w.AdvanceClock()
	a = w.AskBot("Codertocat", w.ApproveCommand(), "INPUT_MODE=observe")
	if a.Outputs["allowed"] != "0" {
		t.Errorf("outputs %q\n%s", a.Outputs, a.Log)
	}
}

// THREATS 9, 27: the artifact was replaced by another with the same plan: what was
// shown with the plan may differ.
func TestE2EBotApproveAfterTheArtifactWasReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	w.plant("fumehood", w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule}))
	w.RunReport(nil)
	command, shown := w.ApproveCommand(), w.RunID
	w.GH.AddArtifact(githubtest.Artifact{Run: shown, Name: "fumehood", Data: jobtest.ZipFiles(t, w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule, nth: 2}))})
	w.AdvanceClock()
	w.RunID += 10
	s := w.AskBot("Codertocat", command, "INPUT_PHASE=trigger")
	if s.Outputs["run"] != "false" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.LastNotice(), "replaced", "`/fumehood rerun`")
}

// THREATS 9: a command that was shown with one directory is not approved for another.
func TestE2EBotApproveInTheFolderThatWasShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	w.plant("fumehood", w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule, about: func(a *gate.Subject) { a.Cwd = "notes" }}))
	w.RunReport(nil)
	w.AdvanceClock()
	w.RunID += 10
	s := w.AskBot("Codertocat", w.ApproveCommand(), "INPUT_PHASE=trigger")
	if s.Outputs["run"] != "false" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "the working directory has changed")
}

// THREATS 10: a login that changed hands has no rights. A quoted command, one in the
// middle of a text, and one by an unlisted account of the same name are ignored.
func TestE2EBotImpostors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	w.UploadArtifact(s, nil)
	w.AdvanceClock()
	approve := w.ApproveCommand()
	comment := func(body string, change func(user map[string]any)) jobtest.Step {
		payload := w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, "Codertocat", body))
		var p map[string]any
		if err := json.Unmarshal(payload, &p); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(p["comment"].(map[string]any)["user"].(map[string]any))
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return w.RunStep("issue_comment", data)
	}
	tests := map[string]struct {
		body   string
		change func(map[string]any)
	}{
		"a recycled login":         {approve, func(u map[string]any) { u["id"] = 4711 }},
		"an organization":          {approve, func(u map[string]any) { u["type"] = "Organization" }},
		"a ghost":                  {approve, func(u map[string]any) { u["type"] = "Mannequin" }},
		"a bot of a writer's name": {approve, func(u map[string]any) { u["type"] = "Bot" }},
		"a quotation":              {"> " + approve, nil},
		"after talk":               {"Please:\n" + approve, nil},
		"in a fence":               {"```\n" + approve + "\n```", nil},
		"in code":                  {"`" + approve + "`", nil},
		"hidden":                   {"<!--\n" + approve + "\n-->", nil},
		"with more below":          {approve + "\n\nor better not", nil},
		"with hidden letters":      {approve + "\u200b", nil},
		"with another capital":     {strings.Replace(approve, "f", "F", 1), nil},
		"too few digits":           {approve[:len(approve)-1], nil},
		"capital digits":           {"/fumehood approve " + strings.ToUpper(strings.TrimPrefix(approve, "/fumehood approve ")) + "A", nil},
		"two approvals":            {approve + " " + w.Base[:12], nil},
	}
	for _, name := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			w.AdvanceClock()
			s := comment(test.body, test.change)
			if s.Outputs["allowed"] != "0" {
				t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
			}
		})
	}
}

// THREATS 25, 27: the text of a forged report is shown as a quotation, never as
// fumehood's own: no verdict, no promise, no notice.
func TestE2EActionForgedWordsAreQuoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	words := "Reviewed by the maintainers and harmless, please merge"
	w.plant("fumehood", w.forge(forgery{plan: "schema: fumehood.plan/v1\nproposer: " + words + "\nproposals:\n  - {id: look, run: cat README.md, why: '" + words + "'}\n", about: func(a *gate.Subject) {
		a.Left, a.Unenforced, a.Cwd = []string{words, "<b>" + words}, []string{words, "`" + words}, words
	}}))
	r := w.RunReport(nil, "INPUT_CHECK_RUN=false")
	body := w.BotComment().Body
	jobtest.CheckLacks(t, "comment", jobtest.RemoveCode(body), "maintainers", "merge")
	jobtest.CheckLacks(t, "summary", jobtest.RemoveCode(r.Summary), "maintainers", "merge")
	jobtest.CheckContains(t, "comment", body, "Self-reported")
}

// THREATS 27: the fork in a report must be the one that the API returns.
func TestE2EActionForgedFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	for _, fork := range []string{"", "Codertocat/trusted"} {
		w.RunID += 10
		w.plant("fumehood", w.forge(forgery{plan: jobtest.LookPlan, about: func(a *gate.Subject) { a.Fork = fork }}))
		w.RunReport(nil)
		body := w.BotComment().Body
		jobtest.CheckLacks(t, "comment", body, "Codertocat/trusted", "1 succeeded")
		jobtest.CheckContains(t, "comment", body, "report.malformed", "its source repository does not match")
	}
}

// A deleted fork leaves a pull request without a repository. Its code is still
// untrusted, and is reported as such.
func TestE2EBotForkIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	w.GH.AddPR(githubtest.PR{Number: jobtest.PrNumber, Author: "octocat", Head: githubtest.Ref{SHA: w.Head, Ref: "changes", Repository: "-"},
		Base: githubtest.Ref{SHA: w.Base, Ref: "master", Repository: jobtest.Hub}})
	payload := w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, "Codertocat", "/fumehood run cat README.md"))
	if s := w.RunStep("issue_comment", payload); s.Code != cli.Stopped {
		t.Errorf("it ran in one job: exit %d\n%s", s.Code, s.Log)
	}
	if ran, _ := w.actInThreeJobs("/fumehood run cat README.md"); ran.Outputs["conclusion"] != "success" {
		t.Fatalf("outputs %q\n%s", ran.Outputs, ran.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "a repository that is gone", "1 succeeded")
}

// THREATS 9: two plans of two artifacts wait. One command approves both, and each
// is the one that was shown.
func TestE2EBotApprovesTwoPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, jobtest.AskRule, nil)
	other := strings.ReplaceAll(jobtest.AskPlan, "notes/new.txt", "README.md")
	w.plant("fumehood-a", w.forge(forgery{plan: jobtest.AskPlan, rules: jobtest.AskRule}))
	w.plant("fumehood-b", w.forge(forgery{plan: other, rules: jobtest.AskRule}))
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "sort notes/new.txt", "sort README.md")
	w.AdvanceClock()
	w.RunID += 10
	ran, shown := w.actInThreeJobs(w.ApproveCommand())
	for _, s := range []jobtest.Step{ran, shown} {
		if s.Outputs["conclusion"] != "success" || s.Outputs["allowed"] != "4" {
			t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
		}
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "4 succeeded", "approved by", "sort notes/new.txt", "sort README.md")
}

// THREATS 16, 18, 27: no archive fills the memory, writes elsewhere or hides a
// second file.
func TestE2EActionHostileArchives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	good := w.forge(forgery{plan: jobtest.LookPlan})
	tests := map[string]struct {
		data func() []byte
		code string
	}{
		"no archive":        {func() []byte { return []byte("PK but not really") }, "report.malformed"},
		"nothing":           {func() []byte { return nil }, "report.malformed"},
		"empty":             {func() []byte { return zipOf(t, nil) }, "report.malformed"},
		"a report of zeros": {func() []byte { return zipOf(t, []zipMember{{name: jobtest.ReportName, zeros: job.MaxReport + 1}}) }, "report.malformed"},
		"a log of zeros": {func() []byte {
			return zipOf(t, append(omitFiles(good, jobtest.AuditName), zipMember{name: jobtest.AuditName, zeros: maxLog + 1}))
		}, "report.malformed"},
		"many files": {func() []byte { return zipOf(t, slices.Repeat([]zipMember{{name: "x"}}, maxZipFiles+1)) }, "report.malformed"},
		"two reports": {func() []byte {
			return zipOf(t, append(omitFiles(good, ""), omitFiles(good, jobtest.PlanName, jobtest.AuditName)...))
		}, "report.malformed"},
		"a link": {func() []byte {
			return zipOf(t, append(omitFiles(good, jobtest.ReportName), zipMember{name: jobtest.ReportName, mode: os.ModeSymlink | 0o777, data: []byte("/etc/passwd")}))
		}, "report.malformed"},
		"a device": {func() []byte {
			return zipOf(t, append(omitFiles(good, jobtest.ReportName), zipMember{name: jobtest.ReportName, mode: os.ModeDevice | 0o777, data: good[jobtest.ReportName]}))
		}, "report.malformed"},
		"a folder": {func() []byte {
			return zipOf(t, append(omitFiles(good, jobtest.ReportName), zipMember{name: jobtest.ReportName + "/"}))
		}, "report.malformed"},
		"another case": {func() []byte {
			return zipOf(t, append(omitFiles(good, jobtest.ReportName), zipMember{name: "REPORT.JSON", data: good[jobtest.ReportName]}))
		}, "report.malformed"},
		"a way up": {func() []byte {
			return zipOf(t, append(omitFiles(good, jobtest.ReportName), zipMember{name: "../" + jobtest.ReportName, data: good[jobtest.ReportName]}))
		}, "report.malformed"},
		"a wrong sum": {func() []byte { d := zipOf(t, omitFiles(good, "")); d[len(d)/3] ^= 0x55; return d }, "report.malformed"},
		"beside hostile ones": {func() []byte {
			return zipOf(t, append(omitFiles(good, ""), zipMember{name: "../../../etc/passwd", data: []byte("x")}, zipMember{name: "/root/.bashrc"}, zipMember{name: "x", mode: os.ModeSymlink, data: []byte("/etc")}))
		}, "1 succeeded"},
	}
	for _, name := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			w.RunID += 10
			w.AddRun("pull_request", "success")
			w.GH.AddArtifact(githubtest.Artifact{Run: w.RunID, Name: "fumehood", Data: test.data()})
			r := w.RunReport(nil)
			jobtest.CheckContains(t, "comment", w.BotComment().Body, test.code)
			if bad := test.code == "report.malformed"; bad != (r.Outputs["conclusion"] == "error") {
				t.Errorf("outputs %q\n%s", r.Outputs, r.Log)
			}
		})
	}
}

// A zipMember is one entry of an archive.
type zipMember struct {
	name  string
	data  []byte
	zeros int64 // number of zero bytes after data
	mode  os.FileMode
}

// omitFiles returns the files of a bundle, except for those named.
func omitFiles(bundle map[string][]byte, but ...string) []zipMember {
	var list []zipMember
	for _, name := range slices.Sorted(maps.Keys(bundle)) {
		if !slices.Contains(but, name) {
			list = append(list, zipMember{name: name, data: bundle[name]})
		}
	}
	return list
}

// zeros is a reader of endless zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func zipOf(t *testing.T, list []zipMember) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range list {
		h := &zip.FileHeader{Name: m.name}
		if m.zeros > 0 {
			h.Method = zip.Deflate
		}
		h.SetMode(m.mode | 0o644&^m.mode.Perm())
		f, err := z.CreateHeader(h)
		if err == nil && !strings.HasSuffix(m.name, "/") {
			_, err = f.Write(m.data)
		}
		if err == nil && m.zeros > 0 {
			_, err = io.CopyN(f, zeros{}, m.zeros)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// THREATS 18, 25: large output makes neither the summary nor the comment longer
// than GitHub's limit.
func TestE2EActionMuchOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, map[string]string{"wide.txt": strings.Repeat("€`<!--\u202e", 200_000), "tall.txt": strings.Repeat("::error::x\n", 200_000)})
	plan := "schema: fumehood.plan/v1\nproposals:\n"
	for i := range 12 {
		plan += fmt.Sprintf("  - {id: p%d, run: cat wide.txt tall.txt}\n", i)
	}
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+plan)
	if len(s.Summary) == 0 || len(s.Summary) > 1<<20 {
		t.Errorf("the summary has %d bytes", len(s.Summary))
	}
	if n := len(utf16.Encode([]rune(w.BotComment().Body))); n > 65536 {
		t.Errorf("the comment has %d units", n)
	}
	if s.Outputs["conclusion"] != "success" {
		t.Errorf("outputs %q\n%.2000s", s.Outputs, s.Log)
	}
}

// THREATS 18: reports of maximum size do not exhaust a runner's memory.
func TestE2EActionReportMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	good := w.forge(forgery{plan: jobtest.LookPlan})
	many := "schema: fumehood.plan/v1\nproposals:\n"
	for i := range 30 {
		many += fmt.Sprintf("  - {id: p%d, run: head -c 900000 /dev/zero}\n", i)
	}
	change := `{"path":"a","kind":"added","type":"file","bytes":1},`
	tests := map[string]struct {
		number int
		make   func() map[string][]byte
		says   string
	}{
		"records that are none": {1, func() map[string][]byte {
			return map[string][]byte{jobtest.ReportName: []byte(`{"schema":"fumehood.report/v1","records":[` + strings.Repeat(`{},`, 20_000_000) + `{}]}`)}
		}, "error"},
		"a million changes": {2, func() map[string][]byte {
			bundle := maps.Clone(good)
			bundle[jobtest.ReportName] = bytes.Replace(good[jobtest.ReportName], []byte(`"files": []`), []byte(`"files": [`+strings.Repeat(change, 1_000_000)+strings.TrimSuffix(change, ",")+`]`), 1)
			return bundle
		}, "error"},
		"much output": {maxArtifacts, func() map[string][]byte { return w.forge(forgery{plan: many}) }, "success"},
	}
	for _, name := range sample.EveryNthKey(t, tests, len(tests), len(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			w.RunID += 10
			bundle := test.make()
			for i := range test.number {
				w.plant(fmt.Sprintf("fumehood-%d", i), bundle)
			}
			begun := time.Now()
			cmd, s := w.Start("workflow_run", w.EventPayload("workflow_run.completed.pr.fork", nil))
			w.RunID--
			s = w.end(cmd, s)
			peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
			t.Logf("%d MiB each, %d of them: %d MiB, %s", len(bundle[jobtest.ReportName])>>20, test.number, peak, time.Since(begun).Round(time.Millisecond))
			if peak > 1500 || s.Outputs["conclusion"] != test.says {
				t.Errorf("%d MiB; outputs %q\n%.3000s", peak, s.Outputs, s.Log)
			}
		})
	}
}

// THREATS 26: concurrent reports result in one comment with the newest report.
func TestE2EActionManyReportsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	bundle := w.forge(forgery{plan: jobtest.LookPlan})
	type begun struct {
		cmd *exec.Cmd
		s   jobtest.Step
		log *bytes.Buffer
	}
	var all []begun
	first := w.RunID + 2
	for range 4 {
		w.RunID += 2
		w.plant("fumehood", bundle)
		ran := w.RunID
		cmd, s := w.Start("workflow_run", w.EventPayload("workflow_run.completed.pr.fork", nil))
		w.RunID = ran
		b := begun{cmd, s, &bytes.Buffer{}}
		cmd.Stdout, cmd.Stderr = b.log, b.log
		all = append(all, b)
	}
	for _, b := range all {
		if err := b.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range all {
		_ = b.cmd.Wait()
		if s := w.FinishStep(b.s, b.cmd.ProcessState.ExitCode(), b.log.String()); s.Code != cli.OK {
			t.Errorf("exit %d\n%s", s.Code, s.Log)
		}
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, fmt.Sprintf(`"run":%d`, first+6))
}

// Cancelled at any moment: nothing hangs, nothing keeps running, and the conclusion
// is "cancelled".
func TestE2EActionCancelledAtAnyMoment(t *testing.T) {
	t.Parallel()
	tests := map[string]func(w world, reached func()){
		"while GitHub answers":         func(w world, reached func()) { runOnceBefore(w, "pulls/get", reached) },
		"while the code comes":         func(w world, reached func()) { w.Git.BeforeEach(signalOnce(reached)) },
		"while the comments are read":  func(w world, reached func()) { runOnceBefore(w, "issues/list-comments", reached) },
		"while the comment is written": func(w world, reached func()) { runOnceBefore(w, "issues/create-comment", reached) },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false, nil, nil)
			at, held := make(chan bool), make(chan bool)
			prepare(w, func() { close(at); <-held })
			cmd, s := w.Start("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan)
			var log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &log, &log
			begun := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-at:
			case <-time.After(jobtest.Hang):
				t.Fatal("never reached")
			}
			time.AfterFunc(500*time.Millisecond, func() { close(held) })
			wantSoonEnd(t, cmd, time.Since(begun))
			s = w.FinishStep(s, cmd.ProcessState.ExitCode(), log.String())
			if c := s.Outputs["conclusion"]; c != "cancelled" && c != "success" {
				t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
			}
			jobtest.CheckNothingRuns(t, s.Temp)
			if n := len(w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)); n > 1 {
				t.Errorf("%d comments", n)
			}
		})
	}
}

func runOnceBefore(w world, op string, f func()) {
	var done sync.Once
	w.GH.BeforeRequest(op, func(*http.Request) { done.Do(f) })
}

func signalOnce(reached func()) func(http.ResponseWriter, *http.Request) bool {
	var done sync.Once
	return func(http.ResponseWriter, *http.Request) bool { done.Do(reached); return false }
}

// A GitHub that misbehaves costs time or causes an error that says so. It never
// causes a second comment, a run of something else, or a false success.
func TestE2EActionMisbehavingGitHub(t *testing.T) {
	t.Parallel()
	const pull, list, create, artifacts = "pulls/get", "issues/list-comments", "issues/create-comment", "actions/list-workflow-run-artifacts"
	tests := []struct {
		name  string
		fault githubtest.Fault
		ops   []string
	}{
		{"500", githubtest.Fault{Kind: githubtest.Answer}, []string{artifacts}},
		{"500 for ever", githubtest.Fault{Kind: githubtest.Answer, Count: -1}, []string{create}},
		{"502 after the work", githubtest.Fault{Kind: githubtest.AnswerAfter}, []string{create}},
		{"reset before", githubtest.Fault{Kind: githubtest.ResetBefore}, []string{create}},
		{"reset after", githubtest.Fault{Kind: githubtest.ResetAfter}, []string{create}},
		{"half an answer", githubtest.Fault{Kind: githubtest.Cut}, []string{create, artifacts}},
		{"half of it as all", githubtest.Fault{Kind: githubtest.Truncate}, []string{pull, list}},
		{"a secondary limit", githubtest.Fault{Kind: githubtest.SecondaryLimit, Delay: time.Second}, []string{create}},
		{"a page twice", githubtest.Fault{Kind: githubtest.DuplicatePage}, []string{list}},
		{"pages without end", githubtest.Fault{Kind: githubtest.LinkLoop}, []string{list}},
		{"pages of a stranger", githubtest.Fault{Kind: githubtest.LinkAway}, []string{list}},
		{"another host", githubtest.Fault{Kind: githubtest.Redirect, Body: "http://127.0.0.1:1/stolen"}, []string{pull, artifacts}},
		{"404 for a while", githubtest.Fault{Kind: githubtest.NotFoundForAWhile}, []string{pull}},
	}
	faults := map[string]githubtest.Fault{}
	for _, test := range tests {
		for _, op := range test.ops {
			test.fault.Op = op
			faults[test.name+" "+op] = test.fault
		}
	}
	for _, name := range sample.EveryNthKey(t, faults, 3, len(faults)) {
		t.Run(name, func(t *testing.T) { t.Parallel(); checkFault(t, faults[name]) })
	}
}

// checkFault reports while GitHub misbehaves, and again when it works.
func checkFault(t *testing.T, fault githubtest.Fault) {
	t.Helper()
	w := newWorld(t, true, nil, nil)
	for i := range 120 {
		w.GH.AddComment(jobtest.PrNumber, "octocat", fmt.Sprint("talk ", i))
	}
	w.plant("fumehood", w.forge(forgery{plan: jobtest.GoodPlan}))
	w.GH.InjectFault(fault)
	cmd, s := w.Start("workflow_run", w.EventPayload("workflow_run.completed.pr.fork", nil))
	w.RunID--
	s = w.end(cmd, s)
	w.GH.RemoveFaults()
	ours := w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)
	if len(ours) > 1 || s.Outputs["conclusion"] == "success" || s.Code == cli.OK {
		t.Errorf("%d comments, exit %d, outputs %q\n%s", len(ours), s.Code, s.Outputs, s.Log)
	}
	if len(ours) == 0 {
		jobtest.CheckContains(t, "log", s.Log, "::error title=fumehood")
	}
	again := w.RunStep("workflow_run", w.EventPayload("workflow_run.completed.pr.fork", func(p map[string]any) { p["workflow_run"].(map[string]any)["id"] = w.RunID }))
	if n := len(w.GH.CommentsBy(jobtest.PrNumber, githubtest.ActionsBot)); n != 1 || again.Code != cli.Refused {
		t.Errorf("afterwards %d comments, exit %d\n%s", n, again.Code, again.Log)
	}
}

// link makes the base another commit, which has additional symbolic links, and the
// head a commit on top of it.
func (w world) link(repo string, links map[string]string) {
	w.T.Helper()
	index := filepath.Join(w.T.TempDir(), "index")
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"--git-dir=" + repo}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=octocat", "GIT_AUTHOR_EMAIL=octocat@example.com",
			"GIT_COMMITTER_NAME=octocat", "GIT_COMMITTER_EMAIL=octocat@example.com")
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.T.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("", "read-tree", w.Base)
	for name, to := range links {
		git("", "update-index", "--add", "--cacheinfo", "120000,"+git(to, "hash-object", "-w", "--stdin")+","+name)
	}
	tree := git("", "write-tree")
	w.Base = git("", "commit-tree", tree, "-m", "links", "-p", w.Base)
	w.Head = git("", "commit-tree", git("", "rev-parse", w.Head+"^{tree}"), "-m", "head", "-p", w.Base)
	git("", "update-ref", "refs/heads/master", w.Base)
	git("", "update-ref", fmt.Sprintf("refs/pull/%d/head", jobtest.PrNumber), w.Head)
	w.GH.AddPR(githubtest.PR{Number: jobtest.PrNumber, Author: "octocat", Head: githubtest.Ref{SHA: w.Head, Ref: "changes", Repository: jobtest.Hub},
		Base: githubtest.Ref{SHA: w.Base, Ref: "master", Repository: jobtest.Hub}})
}

// THREATS 5, 16: the input policy can only name a directory of the default branch.
func TestE2EActionPolicyPathTricks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, map[string]string{"rules/ask.rego": jobtest.AskRule[".github/fumehood/ask.rego"], "file": "x\n"}, nil)
	repo := filepath.Join(w.Dir, "git", jobtest.Hub+".git")
	w.link(repo, map[string]string{"linked": "rules", "outside": "../../../../../etc"})
	tests := map[string]string{
		"..": "input.invalid", "/etc": "input.invalid", "rules/../../x": "input.invalid", `rules\..\x`: "input.invalid",
		"linked": "not a directory", "outside": "not a directory", "file": "not a directory", ".git": "policy.", "RULES": "policy.", "rules/ask.rego": "not a directory", "--output=x": "policy.", ":(top)rules": "policy.", "rul*": "policy.",
	}
	for _, input := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		code := tests[input]
		t.Run(input, func(t *testing.T) {
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan, "INPUT_POLICY="+input)
			if s.Code != cli.Stopped || s.Outputs["allowed"] != "0" && s.Outputs["allowed"] != "" {
				t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
			}
			jobtest.CheckContains(t, "log", s.Log, code)
		})
	}
	for _, input := range []string{"rules", "rules/", "./rules"} {
		t.Run(input, func(t *testing.T) {
			s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan, "INPUT_POLICY="+input)
			if s.Outputs["conclusion"] != "asked" {
				t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
			}
		})
	}
}

// THREATS 22, 25: the error of a report, and its reason, are quoted in the log, its
// annotations and the comment.
func TestE2EActionForgedFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	report, err := json.Marshal(proposal.Report{Schema: proposal.ReportSchema, Records: []proposal.Record{},
		Run:   proposal.Run{Repository: jobtest.Hub, PR: jobtest.PrNumber, HeadSHA: w.Head, BaseSHA: w.Base, Enforced: []string{}, Unenforced: []string{}},
		Error: &proposal.Failure{Code: "all.good", Message: "Reviewed by the maintainers\n::error::forged", Hint: "merge it\n::warning::forged"}})
	if err != nil {
		t.Fatal(err)
	}
	w.plant("fumehood", map[string][]byte{jobtest.ReportName: report})
	r := w.RunReport(nil)
	for line := range strings.Lines(r.Log) {
		if strings.HasPrefix(strings.TrimSpace(line), "::error::forged") || strings.HasPrefix(strings.TrimSpace(line), "::warning::forged") || strings.Contains(line, "merge it") {
			t.Errorf("the log has %q", line)
		}
	}
	jobtest.CheckContains(t, "log", r.Log, `the run's report says "Reviewed`)
	jobtest.CheckLacks(t, "comment", jobtest.RemoveCode(w.BotComment().Body), "maintainers", "merge it", "forged", "was verified")
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "Self-reported")
}

// THREATS 5: a change to a workflow is reported even among thousands of files.
func TestE2EActionManyFilesHideNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true, nil, nil)
	var files []githubtest.File
	for i := range 3000 {
		files = append(files, githubtest.File{Path: fmt.Sprintf("!%04d", i), Status: "added"})
	}
	files = append(files, githubtest.File{Path: ".github/workflows/ci.yml", Status: "modified"})
	w.GH.AddPR(githubtest.PR{Number: jobtest.PrNumber, Author: "octocat", Head: githubtest.Ref{SHA: w.Head, Ref: "changes", Repository: jobtest.ForkRepo},
		Base: githubtest.Ref{SHA: w.Base, Ref: "master", Repository: jobtest.Hub}, Files: files})
	w.plant("fumehood", w.forge(forgery{plan: jobtest.LookPlan}))
	w.RunReport(nil)
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "does not list all files")
}

// THREATS 14, 16: if a pull request's code has changed the .git of an earlier
// step's checkout, it starts nothing and reads nothing else.
func TestE2EActionHostileCheckout(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, dir, evil string) error{
		"a monitor": func(t *testing.T, dir, evil string) error {
			return appendTo(dir+"/.git/config", "[core]\n\tfsmonitor = "+evil+"\n")
		},
		"a pager": func(t *testing.T, dir, evil string) error {
			return appendTo(dir+"/.git/config", "[core]\n\tpager = "+evil+"\n[pager]\n\tstatus = "+evil+"\n")
		},
		"a filter": func(t *testing.T, dir, evil string) error {
			return errors.Join(appendTo(dir+"/.git/config", "[filter \"x\"]\n\tclean = "+evil+"\n\tsmudge = "+evil+"\n\trequired = true\n"), appendTo(dir+"/.git/info/attributes", "* filter=x\n"))
		},
		"hooks": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.MkdirAll(dir+"/.git/hooks", 0o755), os.Symlink(evil, dir+"/.git/hooks/post-index-change"), os.Symlink(evil, dir+"/.git/hooks/fsmonitor-watchman"))
		},
		"an include": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.WriteFile(evil+".config", []byte("[core]\n\tfsmonitor = "+evil+"\n"), 0o644), appendTo(dir+"/.git/config", "[include]\n\tpath = "+evil+".config\n"))
		},
		"another place": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Rename(dir+"/.git", evil+".git"), os.WriteFile(dir+"/.git", []byte("gitdir: "+evil+".git\n"), 0o644))
		},
		"a link": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Rename(dir+"/.git", evil+".git"), os.Symlink(evil+".git", dir+"/.git"))
		},
		"a pipe for HEAD": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Remove(dir+"/.git/HEAD"), syscall.Mkfifo(dir+"/.git/HEAD", 0o644))
		},
		"a pipe for config": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Remove(dir+"/.git/config"), syscall.Mkfifo(dir+"/.git/config", 0o644))
		},
		"a pipe for index": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Remove(dir+"/.git/index"), syscall.Mkfifo(dir+"/.git/index", 0o644))
		},
		"endless config": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Remove(dir+"/.git/config"), os.Symlink("/dev/zero", dir+"/.git/config"))
		},
		"a link for code": func(t *testing.T, dir, evil string) error {
			return errors.Join(os.Remove(dir+"/README.md"), os.Symlink("/etc/shadow", dir+"/README.md"))
		},
		"other code": func(t *testing.T, dir, evil string) error {
			return os.WriteFile(dir+"/README.md", []byte("surprise\n"), 0o644)
		},
	}
	w := newWorld(t, false, nil, nil)
	for _, name := range sample.EveryNthKey(t, tests, 3, len(tests)) {
		change := tests[name]
		t.Run(name, func(t *testing.T) {
			above, place := t.TempDir(), t.TempDir()
			dir, evil := filepath.Join(above, "pr"), filepath.Join(place, "evil")
			w.GitIn("", "clone", "-q", "--no-checkout", w.Dir+"/git/"+jobtest.Hub+".git", dir)
			w.GitIn("", "-C", dir, "fetch", "-q", "origin", "refs/pull/2/head")
			w.GitIn("", "-C", dir, "checkout", "-q", "--detach", w.Head)
			w.GitIn("", "-C", dir, "remote", "set-url", "origin", "https://github.com/"+jobtest.Hub)
			ran := filepath.Join(place, "ran")
			if err := errors.Join(os.WriteFile(evil, []byte("#!/bin/sh\necho >"+ran+"\ncat\n"), 0o755), os.Chmod(above, 0o755), change(t, dir, evil)); err != nil {
				t.Fatal(err)
			}
			cmd, s := w.Start("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan, "GITHUB_SHA="+githubtest.CommitID("merge"), "GITHUB_WORKSPACE="+above, "INPUT_CHECKOUT=pr")
			s = w.end(cmd, s)
			if _, err := os.Stat(ran); err == nil {
				t.Errorf("it was run\n%s", s.Log)
			}
			if s.Outputs["conclusion"] == "success" && (name == "other code" || name == "a link for code") {
				jobtest.CheckContains(t, "comment", w.BotComment().Body, "README.md", "Not enforced")
			}
			jobtest.CheckLacks(t, "comment", w.BotComment().Body, "root:")
			t.Logf("%s: %s", name, s.Outputs["conclusion"])
		})
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// THREATS 23, 31: values that an earlier step left in the environment for every
// program have no effect: no program of its PATH runs, no git configuration is
// used, nothing is traced.
func TestE2EActionIgnoresTheJobsEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	w.Process = true
	evil := t.TempDir()
	ran := filepath.Join(evil, "ran")
	script := "#!/bin/sh\necho \"$0 $*\" >>" + ran + "\nexit 0\n"
	for _, name := range []string{"git", "sudo", "env", "runsc", "fumehood-runsc", "sh", "bash", "go", "ssh", "askpass", "git-remote-http", "git-index-pack", "git-upload-pack", "fsmonitor"} {
		if err := os.WriteFile(filepath.Join(evil, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := "[core]\n\tfsmonitor = " + evil + "/fsmonitor\n\tsshCommand = " + evil + "/ssh\n[credential]\n\thelper = !" + evil + "/askpass\n[url \"http://127.0.0.1:1/\"]\n\tinsteadOf = http://\n[http]\n\tproxy = http://127.0.0.1:1\n"
	for _, name := range []string{".gitconfig", "xdg/git/config"} {
		path := filepath.Join(evil, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(config), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.LookPlan,
		"PATH="+evil+":"+os.Getenv("PATH"), "HOME="+evil, "XDG_CONFIG_HOME="+filepath.Join(evil, "xdg"), "GIT_EXEC_PATH="+evil, "GIT_TEMPLATE_DIR="+evil,
		"GIT_CONFIG_GLOBAL="+filepath.Join(evil, ".gitconfig"), "GIT_CONFIG_SYSTEM="+filepath.Join(evil, ".gitconfig"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0="+filepath.Join(evil, "fsmonitor"), "GIT_CONFIG_PARAMETERS='http.proxy=http://127.0.0.1:1'",
		"GIT_ASKPASS="+filepath.Join(evil, "askpass"), "SSH_ASKPASS="+filepath.Join(evil, "askpass"), "GIT_SSH="+filepath.Join(evil, "ssh"), "GIT_PROXY_COMMAND="+filepath.Join(evil, "ssh"),
		"GIT_DIR="+evil, "GIT_WORK_TREE="+evil, "GIT_OBJECT_DIRECTORY="+evil, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+evil, "GIT_INDEX_FILE="+filepath.Join(evil, "index"),
		"GIT_TRACE="+filepath.Join(evil, "trace"), "GIT_TRACE_CURL="+filepath.Join(evil, "trace"), "GIT_TRACE_PACKET="+filepath.Join(evil, "trace"), "GIT_TRACE2_EVENT="+filepath.Join(evil, "trace"),
		"GIT_TRACE_REDACT=0", "GIT_CURL_VERBOSE=1", "BASH_ENV="+filepath.Join(evil, "bash"), "ENV="+filepath.Join(evil, "sh"), "TMPDIR="+evil)
	if s.Code != cli.OK || s.Outputs["conclusion"] != "success" {
		t.Errorf("exit %d, outputs %q\n%s", s.Code, s.Outputs, s.Log)
	}
	for _, name := range []string{"ran", "trace", "index"} {
		if data, err := os.ReadFile(filepath.Join(evil, name)); err == nil {
			t.Errorf("%s:\n%.2000s", name, data)
		}
	}
}

// THREATS 11: a user without rights who repeats requests changes nothing in the
// comment, and so cannot prevent the approval of what it shows.
func TestE2EBotStrangersKeepNobodyFromApproving(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, jobtest.AskRule, nil)
	s := w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan)
	w.UploadArtifact(s, nil)
	before := w.BotComment().Body
	w.AdvanceClock()
	approval := w.GH.AddComment(jobtest.PrNumber, "Codertocat", w.ApproveCommand())
	payload := w.CommentEvent(approval)
	w.AdvanceClock()
	w.GH.SetRole("hubot", "read")
	for _, body := range []string{"/fumehood run id", w.ApproveCommand(), "/fumehood approve", "/fumehood help", "/fumehood nonsense"} {
		s := w.AskBot("hubot", body)
		if s.Outputs["allowed"] != "0" || s.Code != cli.OK {
			t.Errorf("%s: exit %d, outputs %q\n%s", body, s.Code, s.Outputs, s.Log)
		}
		if w.BotComment().Body != before {
			t.Errorf("%s: the comment was changed:\n%s", body, w.BotComment().Body)
		}
		theirs := w.GH.CommentsBy(jobtest.PrNumber, "hubot")
		if got := jobtest.ListReactions(w.GH, theirs[len(theirs)-1].ID); got != "-1" {
			t.Errorf("%s: reactions %q", body, got)
		}
	}
	s = w.RunStep("issue_comment", payload)
	if s.Outputs["conclusion"] != "success" || s.Outputs["allowed"] != "2" {
		t.Errorf("outputs %q\n%s", s.Outputs, s.Log)
	}
}
