// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// counted calls flow and returns how many requests to the API it made, and which.
func (w *world) counted(flow func()) (n int, list string) {
	w.t.Helper()
	before := len(w.gh.Requests())
	flow()
	count := map[string]int{}
	for _, r := range w.gh.Requests()[before:] {
		count[r.Op]++
		n++
	}
	var lines []string
	for _, op := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%d %s", count[op], op))
	}
	return n, strings.Join(lines, "\n")
}

// inThreeJobs does what a comment requests on a fork's pull request, in the jobs of bot.yml.
func (w *world) inThreeJobs(body string) {
	w.t.Helper()
	payload := w.commentEvent(w.gh.AddComment(prNumber, "Codertocat", body))
	trigger := w.act("issue_comment", payload, "INPUT_PHASE=trigger")
	if trigger.outputs["run"] != "true" {
		w.t.Fatalf("outputs %q\n%s", trigger.outputs, trigger.log)
	}
	w.runID--
	ran := w.act("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.outputs["request"])
	w.upload(ran, nil)
	w.runID--
	if shown := w.act("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.outputs["request"]); shown.outputs["conclusion"] != "success" {
		w.t.Errorf("outputs %q\n%s", shown.outputs, shown.log)
	}
}

// The token of a workflow has 1,000 requests an hour for all of a repository. The budgets are of
// all jobs of a flow together.
func TestActionRequests(t *testing.T) {
	t.Parallel()
	own, fork := newWorld(t, false, askRule, nil), newWorld(t, true, askRule, nil)
	push := func(w *world) {
		s := w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan)
		w.upload(s, nil)
		if w.fork {
			w.report(nil)
			w.runID += 10
		}
		w.later()
	}
	for _, flow := range []struct {
		name   string
		w      *world
		do     func(w *world)
		budget int
	}{
		{"first push", own, push, 7},
		{"next push", own, push, 7},
		{"command, in one job", own, func(w *world) { w.ask("Codertocat", "/fumehood run cat README.md") }, 25},
		{"first push to a fork", fork, push, 12},
		{"next push to a fork", fork, push, 12},
		{"command, in three jobs", fork, func(w *world) { w.inThreeJobs("/fumehood run cat README.md") }, 25},
	} {
		n, list := flow.w.counted(func() { flow.do(flow.w) })
		t.Logf("%s: %d requests\n%s", flow.name, n, list)
		if n > flow.budget {
			t.Errorf("%s: %d requests, the budget is %d\n%s", flow.name, n, flow.budget, list)
		}
	}
}
