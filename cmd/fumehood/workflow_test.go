// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/action"
)

var pinned = regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`)

// A workflow is a file of .github/workflows or .github/examples, with the fields
// that are checked.
type workflow struct {
	file        string
	On          any
	Permissions map[string]string
	Jobs        map[string]workflowJob
}

type workflowJob struct {
	If          string
	Permissions map[string]string
	Timeout     int `yaml:"timeout-minutes"`
	Env         map[string]string
	Container   any
	Uses        string // a reusable workflow
	Steps       []workflowStep
}

type workflowStep struct {
	ID, If, Name, Shell, Uses, Run string
	Env                            map[string]string
	With                           map[string]string
}

// fumehood reports whether the step is the action itself.
func (s workflowStep) fumehood() bool {
	return s.Uses == "./" || strings.HasPrefix(s.Uses, "fumehood/")
}

// runsCode reports whether the step runs code of a pull request, as far as that can
// be determined without the event.
func (s workflowStep) runsCode() bool {
	return s.fumehood() && s.With["phase"] != "report" && s.With["phase"] != "trigger" && s.With["phase"] != "find"
}

func workflows(t *testing.T) []workflow {
	t.Helper()
	var list []workflow
	for _, pattern := range []string{"../../.github/workflows/*.yml", "../../.github/examples/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no workflow is %s: %v", pattern, err)
		}
		for _, file := range files {
			w := workflow{file: strings.TrimPrefix(file, "../../.github/")}
			readYAML(t, file, &w)
			list = append(list, w)
		}
	}
	return list
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// events returns the names of the events that start the workflow.
func (w workflow) events() []string {
	switch on := w.On.(type) {
	case string:
		return []string{on}
	case map[string]any:
		return slices.Sorted(maps.Keys(on))
	}
	return nil
}

// privileged reports whether jobs have secrets and a token with write permission
// although a stranger started the workflow.
func (w workflow) privileged() bool {
	return slices.Contains(w.events(), "workflow_run") || slices.Contains(w.events(), "issue_comment") || slices.Contains(w.events(), "workflow_call")
}

// THREATS 8, 24, 28, 31: no expression is expanded into a shell script, every
// action is pinned to a commit, no job has a permission that it does not list, no
// code of a pull request has access to a secret, and no cache is shared with it.
func TestWorkflows(t *testing.T) {
	for _, w := range workflows(t) {
		if len(w.events()) == 0 || slices.Contains(w.events(), "pull_request_target") {
			t.Errorf("%s is started by %q", w.file, w.events())
		}
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: top-level permissions are not {}", w.file)
		}
		for name, job := range w.Jobs {
			where := w.file + ": " + name
			if job.Permissions == nil || job.Timeout == 0 && job.Uses == "" || job.Container != nil {
				t.Errorf("%s names no permissions or no timeout, or runs in a container", where)
			}
			checkJob(t, where, w, job)
			for _, step := range job.Steps {
				checkStep(t, where, w, step)
			}
		}
	}
	for _, step := range readAction(t).Runs.Steps {
		checkStep(t, "action.yml", workflow{}, step)
	}
}

// asksBesideCode reports whether a job is the one kind that may have a key, the code and a token
// that writes to pull requests: it is only for branches of the same repository, started by
// pull_request, and its only step is fumehood, which alone has the key.
func (w workflow) asksBesideCode(job workflowJob) bool {
	if len(job.Steps) != 1 || len(job.Env) > 0 || !slices.Equal(w.events(), []string{"pull_request"}) || job.If != "github.event.pull_request.head.repo.full_name == github.repository" {
		return false
	}
	s := job.Steps[0]
	return s.fumehood() && s.With["phase"] == "review" && s.With["provider"] != "" && s.With["findings"] == "" &&
		maps.Equal(job.Permissions, map[string]string{"contents": "read", "pull-requests": "write"}) &&
		maps.Equal(s.Env, map[string]string{"ANTHROPIC_API_KEY": "${{ secrets.ANTHROPIC_API_KEY }}"})
}

// checkJob checks that no job, except for asksBesideCode, has two of: a reviewer's key, the pull request's code, and in
// workflows that a stranger can start a token that writes.
func checkJob(t *testing.T, where string, w workflow, job workflowJob) {
	t.Helper()
	if w.asksBesideCode(job) {
		return
	}
	if text, err := yaml.Marshal(job); job.Uses == "" && (err != nil || strings.Contains(string(text), "_API_KEY")) {
		for scope, level := range job.Permissions {
			if level != "read" {
				t.Errorf("%s has a reviewer's key and a token with %s: %s (%v)", where, scope, level, err)
			}
		}
		if slices.ContainsFunc(job.Steps, func(s workflowStep) bool { return s.fumehood() && s.With["phase"] != "find" }) {
			t.Errorf("%s runs fumehood in a job with a reviewer's key, and not to ask the model", where)
		}
	}
	for _, s := range job.Steps {
		if s.With["audit-key"] != "" && s.With["phase"] != "report" {
			t.Errorf("%s gives the key for logs to phase %q", where, s.With["phase"])
		}
	}
	if !slices.ContainsFunc(job.Steps, workflowStep.runsCode) {
		return
	}
	if job.Permissions["id-token"] != "" || job.Permissions["attestations"] != "" || job.Permissions["contents"] != "read" {
		t.Errorf("%s runs code of pull requests with permissions %v", where, job.Permissions)
	}
	if text, err := yaml.Marshal(job); err != nil || strings.Contains(string(text), "secrets.") {
		t.Errorf("%s runs code of pull requests in a job with secrets (%v)", where, err)
	}
	if w.privileged() && job.Permissions["pull-requests"] == "write" {
		t.Errorf("%s runs code of pull requests with a token that writes", where)
	}
}

func checkStep(t *testing.T, where string, w workflow, s workflowStep) {
	t.Helper()
	if strings.Contains(s.Run, "${{") || strings.Contains(s.Shell, "${{") {
		t.Errorf("%s: an expression is expanded into a script: %s", where, s.Run)
	}
	ours := s.Uses == "./" || s.Uses == "fumehood/fumehood@v1" && (strings.HasPrefix(w.file, "examples/") || strings.HasPrefix(w.file, "workflows/call-"))
	if s.Uses != "" && !ours && !pinned.MatchString(s.Uses) {
		t.Errorf("%s: %s is not pinned to a commit", where, s.Uses)
	}
	switch name, _, _ := strings.Cut(s.Uses, "@"); name {
	case "actions/checkout":
		checkCheckout(t, where, w, s)
	case "actions/cache", "actions/cache/restore", "actions/cache/save":
		if problem := cacheProblem(w, s); problem != "" {
			t.Errorf("%s %s", where, problem)
		}
	case "actions/setup-go":
		if s.With["cache"] != "false" {
			t.Errorf("%s: setup-go keeps a cache", where)
		}
	}
}

func checkCheckout(t *testing.T, where string, w workflow, s workflowStep) {
	t.Helper()
	if s.With["persist-credentials"] != "false" {
		t.Errorf("%s: the checkout leaves its credential behind", where)
	}
	if w.privileged() && (s.With["ref"] != "${{ github.sha }}" || s.With["repository"] != "") {
		t.Errorf("%s: a workflow with secrets or a token that writes checks out something other than the default branch: %v", where, s.With)
	}
}

// An actionFile is action.yml, with the fields that are checked.
type actionFile struct {
	Inputs  map[string]struct{ Description, Default string }
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []workflowStep
	}
}

func readAction(t *testing.T) actionFile {
	t.Helper()
	var a actionFile
	readYAML(t, "../../action.yml", &a)
	return a
}

// inputVariable returns the name of the variable for an input. The runner's own
// names keep hyphens, which are invalid in shell variables.
func inputVariable(input string) string {
	return "INPUT_" + strings.ToUpper(strings.ReplaceAll(input, "-", "_"))
}

// Every input is passed to the binary, which reads exactly these. On the real
// runner, a composite action's steps see only the variables that are mapped.
func TestActionInputs(t *testing.T) {
	a := readAction(t)
	handed := map[string]string{}
	for name, value := range a.Runs.Steps[0].Env {
		if strings.HasPrefix(name, "INPUT_") {
			handed[name] = value
		}
	}
	declared, defaults := map[string]string{}, map[string]string{}
	for name, input := range a.Inputs {
		declared[inputVariable(name)] = "${{ inputs." + name + " }}"
		defaults[inputVariable(name)] = input.Default
		if input.Description == "" {
			t.Errorf("input %s has no description", name)
		}
	}
	if diff := cmp.Diff(declared, handed); diff != "" {
		t.Errorf("inputs and what is handed over (-declared +handed):\n%s", diff)
	}
	read := map[string]bool{}
	inputs, problems := action.ReadInputs(func(name string) string { read[name] = true; return "" })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(declared)), slices.Sorted(maps.Keys(read))); diff != "" {
		t.Errorf("inputs and what the binary reads (-declared +read):\n%s", diff)
	}

	// The defaults in action.yml are the binary's defaults.
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	defaults["INPUT_GITHUB_TOKEN"] = ""
	inputs.Artifact = defaults["INPUT_ARTIFACT"] // the only one that may be empty on purpose
	got, problems := action.ReadInputs(func(name string) string { return defaults[name] })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(inputs, got); diff != "" {
		t.Errorf("defaults of the binary and of action.yml (-binary +action.yml):\n%s", diff)
	}
}

// Every output is set by the binary, and every value that it sets is an output or
// is used by the upload step.
func TestActionOutputs(t *testing.T) {
	a := readAction(t)
	want := map[string]bool{}
	for name, output := range a.Outputs {
		want[name] = true
		if output.Value != "${{ steps.fumehood.outputs."+name+" }}" || output.Description == "" {
			t.Errorf("output %s is %q", name, output.Value)
		}
	}
	for _, upload := range a.Runs.Steps[1:] {
		for _, found := range regexp.MustCompile(`steps\.fumehood\.outputs\.([a-z-]+)`).FindAllStringSubmatch(upload.If+upload.With["name"]+upload.With["path"]+upload.With["retention-days"], -1) {
			want[found[1]] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(outputsSet(t)))); diff != "" {
		t.Errorf("outputs of action.yml and of the binary (-action.yml +binary):\n%s", diff)
	}
}

// outputsSet finds the names in the source: the first argument of each Set of
// outputs, and the first element of each pair in a loop.
func outputsSet(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("internal/job/*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			for _, name := range outputNames(n) {
				names[name] = true
			}
			return true
		})
	}
	return names
}

func outputNames(n ast.Node) []string {
	var names []string
	first := func(list []ast.Expr) {
		if len(list) != 2 {
			return
		}
		if literal, ok := list[0].(*ast.BasicLit); ok && literal.Kind == gotoken.STRING {
			name, _ := strconv.Unquote(literal.Value)
			names = append(names, name)
		}
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Set" {
			if of, ok := f.X.(*ast.SelectorExpr); ok && of.Sel.Name == "outputs" {
				first(n.Args)
			}
		}
	case *ast.CompositeLit:
		outer, ok := n.Type.(*ast.ArrayType)
		if !ok {
			break
		}
		if isPair(outer) {
			first(n.Elts)
		} else if inner, ok := outer.Elt.(*ast.ArrayType); ok && isPair(inner) {
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.CompositeLit); ok {
					first(pair.Elts)
				}
			}
		}
	}
	return names
}

// isPair reports whether a type is [2]string.
func isPair(a *ast.ArrayType) bool {
	length, ok := a.Len.(*ast.BasicLit)
	element, isName := a.Elt.(*ast.Ident)
	return ok && length.Value == "2" && isName && element.Name == "string"
}

// The step replaces itself with the binary, and its shell uses nothing from the
// environment.
func TestActionStep(t *testing.T) {
	steps := readAction(t).Runs.Steps
	if len(steps) != 4 || steps[0].ID != "fumehood" {
		t.Fatalf("want the step fumehood, two uploads and what to do if one fails, got %+v", steps)
	}
	if got, want := steps[0].Run, `exec /bin/bash -p "$GITHUB_ACTION_PATH/.github/action/install.sh"`; got != want {
		t.Errorf("the step runs %q, want %q", got, want)
	}
	for _, step := range steps {
		if step.Run != "" && !strings.Contains(step.Shell, " -p ") {
			t.Errorf("the shell %q takes functions from the environment", step.Shell)
		}
	}
	script := jobtest.ReadFile(t, "../../.github/action/install.sh")
	if !strings.HasSuffix(string(script), "\nexec \"$dir/fumehood\" action\n") {
		t.Error("install.sh does not end by becoming fumehood")
	}
	for _, name := range []string{"install.sh", "place.sh"} {
		text := string(jobtest.ReadFile(t, "../../.github/action/"+name))
		if !strings.Contains(text, "\nset -euo pipefail\n") || regexp.MustCompile(`(?m)^[^#]*\beval\b`).MatchString(text) {
			t.Errorf("%s does not stop at its first failure, or evaluates text", name)
		}
	}
	for _, upload := range steps[1:] {
		if !strings.HasPrefix(upload.If, "${{ always() && ") {
			t.Errorf("the upload is left out after a failure: if: %s", upload.If)
		}
	}
}

// No job overwrites the artifact of another. The one that cannot upload says how to fix it.
func TestActionKeepsArtifacts(t *testing.T) {
	uploads, fixed := 0, false
	for _, step := range readAction(t).Runs.Steps {
		if strings.HasPrefix(step.Uses, "actions/upload-artifact@") {
			uploads++
			if step.With["overwrite"] != "false" {
				t.Errorf("%s has overwrite: %q", step.Uses, step.With["overwrite"])
			}
		}
		if step.If == "${{ always() && steps.upload.outcome == 'failure' }}" {
			fixed = strings.Contains(step.Run, "input name") && strings.Contains(step.Run, "::error ") && !strings.Contains(step.Run, "${{")
		}
	}
	if uploads != 2 || !fixed {
		t.Errorf("%d uploads, and the fix is shown: %t", uploads, fixed)
	}
}
