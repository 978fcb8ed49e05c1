// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// A grouped is a workflow, or a part of one in a page, with concurrency groups.
type grouped struct {
	file        string
	On          any
	Concurrency struct{ Group string }
	Jobs        map[string]struct{ Concurrency struct{ Group string } }
}

// groups are the expressions of the workflow and of its jobs, by job; the workflow's own is "".
func (g grouped) groups() map[string]string {
	list := map[string]string{"": g.Concurrency.Group}
	for name, job := range g.Jobs {
		list[name] = job.Concurrency.Group
	}
	maps.DeleteFunc(list, func(_, group string) bool { return group == "" })
	return list
}

// groupedFiles are all workflows and examples, what fumehood init writes, and the examples in pages.
func groupedFiles(t *testing.T) (list []grouped) {
	t.Helper()
	add := func(file, text string) {
		g := grouped{file: strings.TrimPrefix(file, "../../")}
		if err := yaml.Unmarshal([]byte(text), &g); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, g)
	}
	for _, pattern := range []string{"../../.github/workflows/*.yml", "../../.github/examples/*.yml", "../../internal/author/starter/workflows/*.yml", "../../*.md", "../../.github/*.md", "../../.github/*/*.md", "../../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("nothing is %s: %v", pattern, err)
		}
		for _, file := range files {
			text := string(jobtest.ReadFile(t, file))
			if strings.HasSuffix(file, ".yml") {
				add(file, text)
				continue
			}
			for _, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
				if strings.Contains(block[1], "concurrency:") {
					add(file, block[1])
				}
			}
		}
	}
	return list
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// A work is one thing to do: what happened, to what. Its contexts are those of two of its runs.
type work struct {
	event, subject string
	contexts       func(run int) map[string]any
}

// worksOf are works of an event that have nothing in common but the repository.
func worksOf(event string) []work {
	at := func(subject, ref string, payload map[string]any) work {
		return work{event, subject, func(run int) map[string]any {
			return map[string]any{"event_name": event, "ref": ref, "sha": fmt.Sprintf("%s@%d", subject, run), "run_id": fmt.Sprint(subject, run), "event": payload}
		}}
	}
	number := func(field, n string) map[string]any { return map[string]any{field: map[string]any{"number": n}} }
	switch event {
	case "pull_request", "pull_request_review", "pull_request_review_comment":
		return []work{at("#7", "refs/pull/7/merge", number("pull_request", "7")), at("#8", "refs/pull/8/merge", number("pull_request", "8"))}
	case "issue_comment":
		return []work{at("#7", "refs/heads/main", number("issue", "7")), at("#8", "refs/heads/main", number("issue", "8"))}
	case "check_run":
		return []work{at("#7", "refs/heads/main", nil), at("#8", "refs/heads/main", nil)}
	case "merge_group":
		return []work{at("entry 7", "refs/heads/gh-readonly-queue/main/pr-7-aaaa", nil), at("entry 8", "refs/heads/gh-readonly-queue/main/pr-8-aaaa", nil), at("entry 7 on 8", "refs/heads/gh-readonly-queue/main/pr-7-bbbb", nil)}
	case "workflow_dispatch", "push":
		return []work{at("main", "refs/heads/main", nil), at("release", "refs/heads/release", nil), at("a tag", "refs/tags/main", nil)}
	case "schedule":
		return []work{at("main", "refs/heads/main", nil)}
	case "workflow_run":
		var list []work
		for _, r := range [][4]string{{"1", "pull_request", "mona/app", "fix"}, {"2", "pull_request", "mona/app", "fix"}, {"1", "push", "mona/app", "fix"}, {"1", "pull_request", "octo/app", "fix"}, {"1", "pull_request", "mona/app", "fix2"}} {
			list = append(list, at(fmt.Sprint(r), "refs/heads/main", map[string]any{"workflow_run": map[string]any{
				"workflow_id": r[0], "event": r[1], "head_repository": map[string]any{"full_name": r[2]}, "head_branch": r[3]}}))
		}
		return list
	}
	return nil
}

// calledFor are the events for which other workflows call a reusable one.
var calledFor = map[string][]string{
	"call-fumehood.yml": runEvents, "call-sharded.yml": runEvents, "call-fumehood-report.yml": {"workflow_run"},
	"call-bot.yml": commentEvents, "call-review-claude.yml": commentEvents, "call-review-codex.yml": commentEvents,
}

var (
	runEvents     = []string{"pull_request", "merge_group", "push", "workflow_dispatch"}
	commentEvents = []string{"issue_comment", "pull_request_review", "pull_request_review_comment"}
)

// eventsFor are the events for which the groups of a file are evaluated: those that start it, and
// those of the same kind that a user can add.
func (g grouped) eventsFor() []string {
	events := workflow{On: g.On}.events()
	switch {
	case slices.Contains(events, "workflow_call"):
		return calledFor[filepath.Base(g.file)]
	case len(events) == 0: // a job in a page
		return runEvents
	case slices.Contains(events, "pull_request"):
		events = append(events, runEvents...)
	case slices.Contains(events, "issue_comment"):
		events = append(events, commentEvents...)
	}
	slices.Sort(events)
	return slices.Compact(events)
}

// A placed is a work of a workflow of some name and, if it is called, with some inputs.
type placed struct {
	work
	workflow, call string
}

// subjectIn names the work of p: what is done to a pull request is the same work for all events, and
// so is what is done to a ref, unless the workflow keeps events apart.
func (p placed) subjectIn(g grouped) string {
	kind := p.event
	switch {
	case strings.HasSuffix(g.file, "/ci.yml"):
	case strings.HasPrefix(p.subject, "#"):
		kind = "pull request"
	case slices.Contains([]string{"push", "workflow_dispatch", "schedule"}, p.event):
		kind = "ref"
	}
	return fmt.Sprintf("%s %s, workflow %q, call %q", kind, p.subject, p.workflow, p.call)
}

// contextsOf are what expressions of a run of p can read.
func (p placed) contextsOf(run int) map[string]any {
	github := p.contexts(run)
	github["workflow"] = p.workflow // in a called workflow, the name of the caller
	judged := map[string]any{"pr": strings.TrimPrefix(p.subject, "#")}
	return map[string]any{"github": github, "inputs": map[string]any{"name": p.call, "artifact": p.call},
		"needs": map[string]any{"trigger": map[string]any{"outputs": judged}}}
}

// placements are all works of g, in two workflows and, where several calls in one workflow differ by
// an input, in two calls.
func (g grouped) placements() (list []placed) {
	calls := []string{""}
	if slices.Contains([]string{"call-fumehood.yml", "call-sharded.yml"}, filepath.Base(g.file)) {
		calls = append(calls, "unit")
	}
	for _, event := range g.eventsFor() {
		for _, one := range worksOf(event) {
			for _, workflow := range []string{"fumehood", "fumehood 2"} {
				for _, call := range calls {
					list = append(list, placed{one, workflow, call})
				}
			}
		}
	}
	return list
}

// callerGroups are groups of workflows that call others. A called workflow in the group of its caller would
// cancel that.
var callerGroups = []string{"${{ github.workflow }}", "${{ github.workflow }}-${{ github.ref }}", "${{ github.workflow }}-${{ github.event.pull_request.number || github.ref }}"}

// Different work never has the same concurrency group, so that none cancels another, or replaces
// another that waits: other pull requests, merge-queue entries, refs, workflows, calls, and jobs with
// a group of their own. The runs of the same work have the same group.
func TestConcurrencyGroups(t *testing.T) {
	groups := 0
	for _, g := range groupedFiles(t) {
		seen := map[string]string{}
		for job, group := range g.groups() {
			groups++
			if len(g.placements()) < 2 {
				t.Errorf("%s: nothing to compare", g.file)
			}
			for _, p := range g.placements() {
				if strings.HasSuffix(g.file, "/build.yml") && p.event == "push" {
					continue // whose work is a commit
				}
				subject, value := p.subjectIn(g)+", job "+job, expand(t, group, p.contextsOf(0))
				if again := expand(t, group, p.contextsOf(1)); again != value {
					t.Errorf("%s: two runs of %s have the groups %q and %q", g.file, subject, value, again)
				}
				if other, there := seen[value]; there && other != subject {
					t.Errorf("%s: %s and %s have the group %q", g.file, subject, other, value)
				}
				seen[value] = subject
				for _, caller := range callerGroups {
					if strings.Contains(g.file, "/call-") && value == expand(t, caller, p.contextsOf(0)) {
						t.Errorf("%s: the group %q is that of a workflow that calls it", g.file, value)
					}
				}
			}
		}
	}
	if groups < 30 {
		t.Errorf("%d groups, there are more", groups)
	}
}

// A workflow with fumehood has a group, itself or in its job that runs commands.
func TestConcurrencyGroupsAreThere(t *testing.T) {
	for _, g := range groupedFiles(t) {
		text := string(jobtest.ReadFile(t, filepath.Join("../..", g.file)))
		if strings.HasSuffix(g.file, ".yml") && strings.Contains(text, "uses: fumehood/fumehood@") && len(g.groups()) == 0 {
			t.Errorf("%s has no concurrency group", g.file)
		}
	}
}

var (
	expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)
	property   = regexp.MustCompile(`^[a-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$`)
)

// expand evaluates the expressions in a text as GitHub does, as far as groups use them: properties
// and ||. What is missing is "".
func expand(t *testing.T, text string, contexts map[string]any) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(s string) string {
		inner := expression.FindStringSubmatch(s)[1]
		for _, operand := range strings.Split(inner, "||") {
			operand = strings.TrimSpace(operand)
			if !property.MatchString(operand) {
				t.Fatalf("%q has an operand that is not a property: %q", text, operand)
			}
			var value any = contexts
			for _, name := range strings.Split(operand, ".") {
				m, _ := value.(map[string]any)
				value = m[name]
			}
			if s, ok := value.(string); ok && s != "" {
				return s
			}
		}
		return ""
	})
}

func TestExpand(t *testing.T) {
	contexts := map[string]any{"github": map[string]any{"ref": "refs/heads/main", "event": map[string]any{"issue": map[string]any{"number": "7"}, "none": ""}}}
	got := map[string]string{}
	for _, text := range []string{"plain", "a-${{ github.ref }}", "${{github.event.issue.number||github.ref}}", "${{ github.event.pull_request.number || github.ref }}", "${{ github.event.none }}-${{ needs.x.outputs.pr }}."} {
		got[text] = expand(t, text, contexts)
	}
	want := map[string]string{"plain": "plain", "a-${{ github.ref }}": "a-refs/heads/main", "${{github.event.issue.number||github.ref}}": "7", "${{ github.event.pull_request.number || github.ref }}": "refs/heads/main", "${{ github.event.none }}-${{ needs.x.outputs.pr }}.": "-."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
