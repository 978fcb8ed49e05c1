// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/policy"
	policysource "github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func options(log *bytes.Buffer, env map[string]string) Options {
	return Options{Getenv: func(name string) string { return env[name] }, Stdout: log, Program: "/bin/false", Version: "v0.0.0", Compile: policy.New}
}

// No option but Settle has a default.
func TestOptionsAreRequired(t *testing.T) {
	for name, remove := range map[string]func(*Options){
		"Getenv": func(o *Options) { o.Getenv = nil }, "Stdout": func(o *Options) { o.Stdout = nil },
		"Program": func(o *Options) { o.Program = "" }, "a path": func(o *Options) { o.Program = "fumehood" },
		"Version": func(o *Options) { o.Version = "" }, "Compile": func(o *Options) { o.Compile = nil },
	} {
		o := options(&bytes.Buffer{}, nil)
		remove(&o)
		if c, err := Do(t.Context(), o); err == nil || c.Status != Stopped {
			t.Errorf("without %s: %+v, %v", name, c, err)
		}
	}
}

// What stops a step before it begins is a conclusion, in the log, the outputs and the
// summary.
func TestDoRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	runner := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "mona/app", "GITHUB_SERVER_URL": "https://github.example", "GITHUB_API_URL": "https://api.github.example",
		"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": file("event"), "GITHUB_WORKSPACE": dir, "RUNNER_TEMP": dir, "GITHUB_JOB": "j",
		"GITHUB_RUN_ID": "1", "GITHUB_RUN_NUMBER": "1", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_OUTPUT": file("output"), "GITHUB_STEP_SUMMARY": file("summary"),
		"INPUT_FAIL_ON": "always",
	}
	var log bytes.Buffer
	c, err := Do(t.Context(), options(&log, runner))
	if err != nil || c != (Conclusion{Stopped, action.Stopped}) {
		t.Errorf("%+v, %v", c, err)
	}
	for name, want := range map[string]string{"output": "conclusion<<", "summary": "input.invalid"} {
		if data, _ := os.ReadFile(filepath.Join(dir, name)); !strings.Contains(string(data), want) {
			t.Errorf("%s has no %q:\n%s", name, want, data)
		}
	}
	if !strings.Contains(log.String(), "input.invalid") || !strings.Contains(log.String(), "fail-on") {
		t.Errorf("log:\n%s", log.String())
	}
	log.Reset()
	if c, err := Do(t.Context(), options(&log, nil)); err != nil || c.Status != Stopped || !strings.Contains(log.String(), "runner.not-a-runner") {
		t.Errorf("outside of a job: %+v, %v\n%s", c, err, log.String())
	}
}

func TestStatus(t *testing.T) {
	for name, test := range map[string]struct {
		fails, stopped, unwritten bool
		want                      Status
	}{
		"success":                      {want: Passed},
		"a denial that fail-on minds":  {fails: true, want: Refused},
		"stopped":                      {fails: true, stopped: true, want: Stopped},
		"stopped with fail-on: never":  {stopped: true, want: Passed},
		"outputs could not be written": {unwritten: true, want: Stopped},
	} {
		if got := statusOf(test.fails, test.stopped, test.unwritten); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// An error is never nothing to do.
func TestOutcomeOf(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		out  Outcome
		err  error
		want action.Outcome
	}{
		"nothing to do":      {t.Context(), Outcome{Skipped: "closed"}, nil, action.Outcome{Skipped: true}},
		"an error":           {t.Context(), Outcome{Skipped: "closed"}, errors.New("x"), action.Outcome{Stopped: true}},
		"an error at an end": {cancelled, Outcome{}, errors.New("x"), action.Outcome{Cancelled: true}},
		"asked to end":       {t.Context(), Outcome{}, &proposal.StopError{Code: "run.cancelled"}, action.Outcome{Cancelled: true}},
	} {
		if got := outcomeOf(test.ctx, test.out, test.err); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// Only an Outcome with plans and without a reason to skip them runs anything.
func TestProceeds(t *testing.T) {
	plans := Request{Plans: []Planned{{}}}
	if !(Outcome{Request: plans}).proceeds() || (Outcome{Request: plans, Skipped: "x"}).proceeds() || (Outcome{}).proceeds() {
		t.Error("an outcome that is skipped or empty proceeds, or another does not")
	}
}

// The directory of a branch is its policy as a whole, or the job stops.
func TestPolicyError(t *testing.T) {
	for name, test := range map[string]struct {
		tree checkout.Tree
		err  error
		want string
	}{
		"whole":     {checkout.Tree{}, nil, ""},
		"absent":    {checkout.Tree{}, &checkout.NotFound{}, "policy.missing"},
		"a file":    {checkout.Tree{}, &proposal.StopError{Code: "checkout.tree"}, "policy.missing"},
		"a link":    {checkout.Tree{Left: []checkout.Left{{Path: "x.rego"}}}, nil, "policy.incomplete"},
		"no answer": {checkout.Tree{}, &proposal.StopError{Code: "checkout.fetch"}, "checkout.fetch"},
	} {
		if got := codeOf(policyError("policy", "main", test.tree, test.err)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A layer keeps its role on its way to the process that runs, and one that would replace
// the shipped policy has no way.
func TestPolicyRoles(t *testing.T) {
	at := func(dir string, role policy.Role) layer {
		return layer{dir: dir, policy: policy.Layer{Role: role}, origin: policysource.Origin{Spec: dir}}
	}
	b := &Base{layers: []layer{at("/o", policy.Allows), at("/h", policy.Opens), at("/r", policy.Restricts)}}
	var s runspec.Spec
	err := b.addPolicies(t.Context(), &s)
	if got := slices.Concat(s.Organization, []string{"hosts"}, s.Hosts, []string{"restricting"}, s.Restricting); err != nil ||
		!slices.Equal(got, []string{"/o", "hosts", "/h", "restricting", "/r"}) || s.Origins["/h"].Spec != "/h" {
		t.Errorf("%q, %v, %v", got, s.Origins, err)
	}
	if err := (&Base{layers: []layer{at("/g", policy.Grants)}}).addPolicies(t.Context(), &s); err == nil {
		t.Error("a layer that replaces the shipped policy was passed on")
	}
}

func TestTouched(t *testing.T) {
	j := &Job{in: action.Inputs{Policy: "rules/"}}
	files := changedFiles{paths: []string{"main.go", ".github/workflows/ci.yml", "rules/a.rego", "rulesx/a.rego", "action.yml", "sub/action.yml", ".github/fumehood/a.rego", ".github/fumehood.yml"}}
	got := Report{Job: j, files: files}.touched()
	if want := []string{".github/workflows/ci.yml", "rules/a.rego", "action.yml", ".github/fumehood.yml"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Files of set-up are named only if set-up failed.
func TestSetupFiles(t *testing.T) {
	failed := proposal.Record{Proposal: proposal.Proposal{Origin: proposal.OriginSetup}, Decision: proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{}},
		Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1}, Cause: &proposal.Cause{Kind: "dependencies"}}
	other := failed
	other.Proposal.Origin = ""
	files := changedFiles{paths: []string{"main.go", "web/package-lock.json", "requirements/test.txt", "go.mod", "docs/requirements.md"}}
	for want, r := range map[string]proposal.Record{"web/package-lock.json requirements/test.txt go.mod": failed, "": other} {
		got := Report{Job: &Job{}, files: files, Outcome: Outcome{Runs: []PlanRun{{Report: proposal.Report{Records: []proposal.Record{r}}}}}}.setupFiles()
		if strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Root runs no program that another user can swap.
func TestCheckRootOwned(t *testing.T) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err = errors.Join(err, checkRootOwned(shell)); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "fumehood")
	if err := os.WriteFile(file, nil, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o777); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(checkRootOwned(file)); code != "install.not-root-owned" {
		t.Errorf("a program that anyone may write: %q", code)
	}
}

func TestLineWriter(t *testing.T) {
	var lines []string
	w := &lineWriter{line: func(s string) { lines = append(lines, s) }}
	for _, part := range []string{"one\ntw", "o\n", strings.Repeat("x", maxLine+1), "\nrest"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	w.flush()
	if want := []string{"one", "two", strings.Repeat("x", maxLine), "x", "rest"}; !slices.Equal(lines, want) || w.last != "rest" {
		t.Errorf("%q", lines)
	}
}
