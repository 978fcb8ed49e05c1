// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// No later green job replaces the red one of the same commit: not another job or workflow, a named plan, a
// bot's run, or an older run. A newer run of the same job does. There is one comment, and each has a check
// run of its own.
func TestE2EActionSections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read", "checks:write")
	opened := w.EventPayload("pull_request.opened", nil)
	run := func(env []string, more ...string) jobtest.Step {
		return w.RunStep("pull_request", opened, append(append(env, "INPUT_CHECK_RUN=true"), more...)...)
	}
	run(inJob("ci.yml", "unit"), redPlan)
	red := w.RunID
	if got := w.CommentHeading(); got != "## ❌ fumehood: 1 failed" {
		t.Fatalf("%q\n%s", got, w.Said)
	}
	for _, tt := range []struct {
		name string
		do   func()
		want string
		part string
	}{
		{"another job", func() { run(inJob("ci.yml", "lint"), greenPlan) }, "## ❌ fumehood: 1 failed, 1 succeeded", "### ✅ `ci.yml / lint`: 1 succeeded"},
		{"another workflow", func() { run(inJob("nightly.yml", "unit"), greenPlan) }, "## ❌ fumehood: 1 failed, 2 succeeded", "### ✅ `nightly.yml / unit`: 1 succeeded"},
		{"a named plan", func() { run(inJob("ci.yml", "unit", "INPUT_NAME=web"), greenPlan, "INPUT_WORKING_DIRECTORY=notes") }, "## ❌ fumehood: 2 failed, 2 succeeded", "### ❌ `ci.yml / unit / web`: 1 failed"},
		{"a named plan again", func() { run(inJob("ci.yml", "unit", "INPUT_NAME=web"), greenPlan) }, "## ❌ fumehood: 1 failed, 3 succeeded", "### ✅ `ci.yml / unit / web`: 1 succeeded"},
		{"a bot's run", func() { w.AskBot("Codertocat", "/fumehood run cat README.md") }, "## ❌ fumehood: 1 failed, 4 succeeded", "### ✅ run requested by `Codertocat`: 1 succeeded"},
		{"the same attempt", func() { run(inJob("ci.yml", "unit"), greenPlan, fmt.Sprint("GITHUB_RUN_ID=", red)) }, "## ❌ fumehood: 1 failed, 4 succeeded", "### ❌ `ci.yml / unit`: 1 failed"},
		{"a newer run with a smaller id", func() {
			w.AdvanceClock()
			run(inJob("ci.yml", "unit"), greenPlan, fmt.Sprint("GITHUB_RUN_ID=", red-900))
		}, "## ✅ fumehood: 5 succeeded", "### ✅ `ci.yml / unit`: 1 succeeded"},
		{"run again, and red", func() {
			w.AdvanceClock()
			run(inJob("ci.yml", "unit"), redPlan, fmt.Sprint("GITHUB_RUN_ID=", red), "GITHUB_RUN_ATTEMPT=2")
		}, "## ❌ fumehood: 1 failed, 4 succeeded", "### ❌ `ci.yml / unit`: 1 failed"},
	} {
		tt.do()
		if got := w.CommentHeading(); got != tt.want || !strings.Contains(w.BotComment().Body, tt.part+"\n") {
			t.Errorf("%s: %q, want %q\n%s", tt.name, got, tt.want, w.BotComment().Body)
		}
	}
	var names []string
	for _, check := range w.GH.CheckRuns(w.Head) {
		names = append(names, check.Name)
	}
	slices.Sort(names)
	want := []string{"fumehood / ci / lint", "fumehood / ci / unit", "fumehood / ci / unit / web", "fumehood / nightly / unit"}
	if got := slices.Compact(names); !slices.Equal(got, want) {
		t.Errorf("check runs %q", got)
	}
	w.GH.RemoveComment(w.BotComment().ID)
	run(inJob("ci.yml", "unit"), greenPlan)
	if got := w.CommentHeading(); got != "## ✅ fumehood: 1 succeeded" {
		t.Errorf("after the comment was deleted: %q", got)
	}
}
