// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var approvalShown = regexp.MustCompile(`/fumehood approve [0-9a-f]{8}`)

// counted calls flow and returns how many requests to the API it made, how many of these count
// against the token's limit, and which they are. What GitHub answers with "not modified" does not
// count, and neither does the store of artifacts, which is not the API.
func (w *world) counted(flow func()) (all, charged int, list string) {
	w.t.Helper()
	before := len(w.gh.Requests())
	flow()
	count := map[string]int{}
	for _, r := range w.gh.Requests()[before:] {
		switch {
		case r.Op == "blob":
			continue
		case r.Status != http.StatusNotModified:
			charged++
			count[r.Op]++
		}
		all++
	}
	var lines []string
	for _, op := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%d %s", count[op], op))
	}
	return all, charged, strings.Join(lines, "\n")
}

// inThreeJobs does what a comment requests on a fork's pull request, in the jobs of bot.yml.
func (w *world) inThreeJobs(body string) {
	w.t.Helper()
	w.actor = "Codertocat"
	payload := w.commentEvent(w.gh.AddComment(prNumber, w.actor, body))
	trigger := w.act("issue_comment", payload, "INPUT_PHASE=trigger")
	if trigger.outputs["run"] != "true" {
		w.t.Fatalf("outputs %q\n%s", trigger.outputs, trigger.log)
	}
	w.runID--
	w.permit("contents:read", "pull_requests:read")
	ran := w.act("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.outputs["request"])
	w.upload(ran, nil)
	w.runID--
	w.permit("contents:read", "pull_requests:write", "actions:read")
	if shown := w.act("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.outputs["request"]); shown.outputs["conclusion"] != "success" {
		w.t.Errorf("outputs %q\n%s", shown.outputs, shown.log)
	}
}

// The token of a workflow has 1,000 requests an hour for all of a repository. The budgets are of
// all jobs of a flow together.
func TestE2EActionRequests(t *testing.T) {
	t.Parallel()
	own, fork := newWorld(t, false, askRule, nil), newWorld(t, true, askRule, nil)
	push := func(w *world) {
		if !w.fork {
			w.upload(w.act("pull_request", w.event("pull_request.opened", nil), "INPUT_PLAN="+askPlan), nil)
			w.later()
			return
		}
		w.permit("contents:read", "pull_requests:read")
		w.upload(w.act("pull_request", w.event("pull_request.opened.fork", nil), "INPUT_PLAN="+askPlan), nil)
		w.permit("contents:read", "pull_requests:write", "actions:read")
		w.report(nil)
		w.runID += 10
		w.later()
	}
	approve := func() string { return approvalShown.FindString(fork.comment().Body) }
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
		{"approval, in three jobs", fork, func(w *world) { w.inThreeJobs(approve()) }, 25},
		{"command, in three jobs", fork, func(w *world) { w.inThreeJobs("/fumehood run cat README.md") }, 25},
	} {
		all, charged, list := flow.w.counted(func() { flow.do(flow.w) })
		t.Logf("%s: %d requests, %d count against the limit", flow.name, all, charged)
		if charged > flow.budget || all > flow.budget+1 || all < 5 {
			t.Errorf("%s: %d requests, of which %d count against the limit; the budget is %d\n%s", flow.name, all, charged, flow.budget, list)
		}
	}
}
