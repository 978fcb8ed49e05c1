// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// countRequests calls flow and returns how many requests to the API it made, how many of these count
// against the token's limit, and which they are. What GitHub answers with "not modified" does not
// count, and neither does the store of artifacts, which is not the API.
func (w world) countRequests(flow func()) (all, charged int, list string) {
	w.T.Helper()
	before := len(w.GH.Requests())
	flow()
	count := map[string]int{}
	for _, r := range w.GH.Requests()[before:] {
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

// actInThreeJobs does what a comment requests on a fork's pull request, in the jobs of bot.yml. It
// returns the job that ran the code and the one that reported it.
func (w world) actInThreeJobs(body string) (ran, shown jobtest.Step) {
	w.T.Helper()
	w.Actor = "Codertocat"
	payload := w.CommentEvent(w.GH.AddComment(jobtest.PrNumber, w.Actor, body))
	trigger := w.RunStep("issue_comment", payload, "INPUT_PHASE=trigger")
	if trigger.Outputs["run"] != "true" || trigger.Outputs["request"] == "" {
		w.T.Fatalf("outputs %q\n%s", trigger.Outputs, trigger.Log)
	}
	w.RunID--
	w.SetPermissions("contents:read", "pull_requests:read")
	ran = w.RunStep("issue_comment", payload, "INPUT_PHASE=run", "INPUT_REQUEST="+trigger.Outputs["request"])
	w.UploadArtifact(ran, nil)
	w.RunID--
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	shown = w.RunStep("issue_comment", payload, "INPUT_PHASE=report", "INPUT_REQUEST="+trigger.Outputs["request"])
	if shown.Outputs["conclusion"] != "success" {
		w.T.Errorf("outputs %q\n%s", shown.Outputs, shown.Log)
	}
	return ran, shown
}

// The token of a workflow has 1,000 requests an hour for all of a repository. The budgets are of
// all jobs of a flow together.
func TestE2EActionRequests(t *testing.T) {
	t.Parallel()
	own, fork := newWorld(t, false, jobtest.AskRule, nil), newWorld(t, true, jobtest.AskRule, nil)
	push := func(w world) {
		if !w.Fork {
			w.UploadArtifact(w.RunStep("pull_request", w.EventPayload("pull_request.opened", nil), "INPUT_PLAN="+jobtest.AskPlan), nil)
			w.AdvanceClock()
			return
		}
		w.SetPermissions("contents:read", "pull_requests:read")
		w.UploadArtifact(w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), "INPUT_PLAN="+jobtest.AskPlan), nil)
		w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
		w.RunReport(nil)
		w.RunID += 10
		w.AdvanceClock()
	}
	approve := func() string { return jobtest.ApprovalShown.FindString(fork.BotComment().Body) }
	for _, flow := range []struct {
		name   string
		w      world
		do     func(w world)
		budget int
	}{
		{"first push", own, push, 7},
		{"next push", own, push, 7},
		{"command, in one job", own, func(w world) { w.AskBot("Codertocat", "/fumehood run cat README.md") }, 25},
		{"first push to a fork", fork, push, 12},
		{"next push to a fork", fork, push, 12},
		{"approval, in three jobs", fork, func(w world) { w.actInThreeJobs(approve()) }, 25},
		{"command, in three jobs", fork, func(w world) { w.actInThreeJobs("/fumehood run cat README.md") }, 25},
	} {
		all, charged, list := flow.w.countRequests(func() { flow.do(flow.w) })
		t.Logf("%s: %d requests, %d count against the limit", flow.name, all, charged)
		if charged > flow.budget || all > flow.budget+1 || all < 5 {
			t.Errorf("%s: %d requests, of which %d count against the limit; the budget is %d\n%s", flow.name, all, charged, flow.budget, list)
		}
	}
}
