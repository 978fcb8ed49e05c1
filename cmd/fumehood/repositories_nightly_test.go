// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	voice "github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An upstream is a published package with its tests, and two edits that break one of them.
type upstream struct {
	Name, Version string
	// Packages are all that the tests need, and take the place of package.json's devDependencies,
	// most of which are linters and browsers. For npm only.
	Packages map[string]string
	// Run is its own test command, without linters.
	Run string
	// Apart says that the test command reports both failures if both are there.
	Apart bool
	// Old breaks a test on the base, and New one in the pull request.
	Old, New edit
}

// An edit replaces From, which is in File once, by To. Test then fails, at the line At of the
// workspace, and Says is part of what it says.
type edit struct {
	File, From, To string
	Test, At, Says string
}

func readUpstreams(t *testing.T) (list []upstream) {
	t.Helper()
	data, err := os.ReadFile("testdata/repositories.yml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// The verdict about repositories that fumehood was not written with is true: what is green
// outside is green inside, a failure of the base is not blamed on the pull request, and one that
// the pull request makes is shown with the test's name, message and line.
func TestNightlyRepositories(t *testing.T) {
	for _, r := range readUpstreams(t) {
		t.Run(r.Name, func(t *testing.T) {
			d := newDesk(t)
			r.fetch(t, d)
			if out, err := r.native(t, d); err != nil {
				t.Fatalf("natively: %v\n%s", err, out)
			}
			d.write(t, "plan.yaml", mustJSON(t, map[string]any{"schema": "fumehood.plan/v1", "proposals": []any{map[string]any{"id": "it", "run": r.Run, "timeout": "5m"}}}))

			green := r.try(t, d, "green", nil, nil)
			if rec := last(green); rec.Outcome() != proposal.OutcomeSucceeded {
				t.Errorf("green: %v %+v\n%s", rec.Outcome(), rec.Cause, d.stdout(t, "green")+stderrOf(rec.Result))
			}

			before := r.try(t, d, "before", []edit{r.Old}, []edit{r.Old})
			if rec := last(before); rec.Outcome() != proposal.OutcomeFailedBefore {
				t.Errorf("a failure of the base: %v, compared %+v\n%s", rec.Outcome(), rec.Base, d.printedOutput(t, "before"))
			}
			jobtest.CheckContains(t, "what it says of the base", voice.Markdown(before), "fails before this pull request, too")

			made := r.try(t, d, "made", nil, []edit{r.New})
			if rec := last(made); rec.Outcome() != proposal.OutcomeFailed || rec.Base == nil || rec.Base.Verdict != proposal.BasePasses {
				t.Errorf("a failure of the pull request: %v, compared %+v", rec.Outcome(), rec.Base)
			}
			r.New.check(t, d, "made", voice.Markdown(made))

			if !r.Apart {
				return
			}
			both := r.try(t, d, "both", []edit{r.Old}, []edit{r.Old, r.New})
			if rec := last(both); rec.Outcome() != proposal.OutcomeFailed || rec.Base == nil || rec.Base.Verdict != proposal.BaseNew {
				t.Errorf("a failure of each: %v, compared %+v", rec.Outcome(), rec.Base)
			}
			r.New.check(t, d, "both", voice.Markdown(both))
			if line := failureLine(voice.Markdown(both)); strings.Contains(line, r.Old.Test) {
				t.Errorf("the line blames the pull request for %s: %s", r.Old.Test, line)
			}
		})
	}
}

// last is the record of the plan's command: those of set-up are before it.
func last(r proposal.Report) proposal.Record { return r.Records[len(r.Records)-1] }

// fetch makes a git repository of the package in the workspace of d.
func (r upstream) fetch(t *testing.T, d desk) {
	t.Helper()
	if strings.Contains(r.Name, "/") {
		goModule(r.Name+"@"+r.Version)(t, d)
	} else {
		unpack(t, d, r.Name+"@"+r.Version)
		r.limitPackages(t, d)
	}
	d.git(t, "init", "-q", "-b", "main")
	d.commit(t, "base")
}

// limitPackages writes package.json with Packages only.
func (r upstream) limitPackages(t *testing.T, d desk) {
	t.Helper()
	data, err := os.ReadFile(d.path("ws/package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	delete(manifest, "devDependencies")
	if len(r.Packages) > 0 {
		manifest["devDependencies"] = r.Packages
	}
	d.write(t, "ws/package.json", mustJSON(t, manifest))
	d.write(t, "ws/.gitignore", "node_modules\n")
}

// native runs the test command in a copy of the workspace, with its packages.
func (r upstream) native(t *testing.T, d desk) ([]byte, error) {
	t.Helper()
	copyWritable(t, d.path("ws"), d.path("native"))
	install := exec.CommandContext(t.Context(), "go", "mod", "download")
	if _, err := os.Stat(d.path("native/package.json")); err == nil {
		install = exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
	}
	install.Dir = d.path("native")
	runCommand(t, install)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", r.Run)
	cmd.Dir = d.path("native")
	return cmd.CombinedOutput()
}

// try runs the plan on a branch with the edits, from a base with others.
func (r upstream) try(t *testing.T, d desk, name string, base, head []edit) proposal.Report {
	t.Helper()
	d.git(t, "checkout", "-q", "-f", "--detach", "main")
	start := d.git(t, "rev-list", "--max-parents=0", "HEAD")
	d.git(t, "checkout", "-q", "-B", "main", start)
	for _, e := range base {
		e.apply(t, d)
	}
	d.commit(t, "what the base has")
	d.git(t, "checkout", "-q", "-B", "pull-request")
	for _, e := range head[len(base):] {
		e.apply(t, d)
	}
	d.write(t, "ws/CHANGES-OF-"+name, "A change.\n")
	d.commit(t, "the change")
	cmd := d.command(t.Context(), "run", "--plan", d.path("plan.yaml"), "--workspace", d.path("ws"), "--base", "main", "--artifacts", d.path(name),
		"--report", d.path(name+".json"), "--markdown", d.path(name+".md"), "--audit", d.path(name+".jsonl"), "--layers", "write", "--layers-dir", d.path("layers"))
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if code := exitCode(t, err); code == exitUsage || code == exitStopped {
		t.Fatalf("%s: exit code %d\n%s", name, code, out)
	}
	d.checkSealed(t, name)
	return d.report(t, name)
}

func (e edit) apply(t *testing.T, d desk) {
	t.Helper()
	path := d.path(filepath.Join("ws", e.File))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(data, []byte(e.From)); n != 1 {
		t.Fatalf("%s has %q %d times", e.File, e.From, n)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(e.From), []byte(e.To), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check checks that the first failure of a report, and the first that its comment shows, is e's.
func (e edit) check(t *testing.T, d desk, name, comment string) {
	t.Helper()
	line := failureLine(comment)
	for _, piece := range []string{e.Test, e.At, e.Says} {
		if !strings.Contains(line, piece) {
			t.Errorf("%s: the line has no %q: %s\n%s", name, piece, line, d.printedOutput(t, name))
		}
	}
}

// failureLine is the line of a comment below its first command, with the cause of its failure.
func failureLine(comment string) string {
	_, rest, _ := strings.Cut(comment, "\n<br>")
	line, _, _ := strings.Cut(rest, "\n")
	return html.UnescapeString(line)
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

// git runs git in the workspace.
func (d desk) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", d.path("ws"), "-c", "user.name=Test", "-c", "user.email=test@example.com"}, args...)...)
	return strings.TrimSpace(string(runCommand(t, cmd)))
}

func (d desk) commit(t *testing.T, message string) {
	t.Helper()
	d.git(t, "add", "-A")
	d.git(t, "commit", "-q", "--allow-empty", "-m", message)
}

// printedOutput is what the command printed, and the failures that the report has.
func (d desk) printedOutput(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(d.path(name + ".json"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Records []struct {
			Result struct{ Failures []json.RawMessage }
		}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	text := d.stdout(t, name) + stderrOf(last(d.report(t, name)).Result)
	for _, f := range r.Records[len(r.Records)-1].Result.Failures {
		text += string(f) + "\n"
	}
	return text
}
