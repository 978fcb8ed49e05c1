// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/split"
)

const splitPlan = "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: a, run: echo a}\n  - {id: b, run: echo b}\n  - {id: c, run: echo c, needs: [a]}\n"

// matrixOf returns the names and the plans of a matrix.
func matrixOf(t *testing.T, text string) (names, plans []string) {
	t.Helper()
	var m struct{ Include []struct{ Name, Plan string } }
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	for _, e := range m.Include {
		names, plans = append(names, e.Name), append(plans, e.Plan)
	}
	return names, plans
}

// A plan is split, its parts run, and the report has both and their durations. Durations that are
// not valid change nothing.
func TestE2EActionSplit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false, nil, nil)
	opened := w.EventPayload("pull_request.opened", nil)
	for name, restored := range map[string]string{"hostile": `{"schema":"fumehood.durations/v1","milliseconds":{"a":-1,"::error::x":1}}`, "large": strings.Repeat("x", split.MaxDurationsFile+1)} {
		r, _ := w.actRestored("pull_request", opened, map[string][]byte{"d.json": []byte(restored)}, splitPlan, "INPUT_PHASE=split", "INPUT_PARTS=2", "INPUT_DURATIONS="+restoredDir+"/d.json")
		if names, _ := matrixOf(t, r.Outputs["matrix"]); r.Code != cli.OK || len(names) != 2 || !strings.Contains(r.Log, "durations.invalid") {
			t.Errorf("%s: exit %d, %v\n%s", name, r.Code, names, r.Log)
		}
	}
	phase := func(phase string, env ...string) jobtest.Step {
		w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
		s := w.RunStep("pull_request", opened, append([]string{"INPUT_PLAN=", "INPUT_PHASE=" + phase}, env...)...)
		if phase == "run" {
			w.UploadArtifact(s, nil)
		}
		w.RunID--
		return s
	}
	s := phase("split", splitPlan, "INPUT_PARTS=2")
	names, plans := matrixOf(t, s.Outputs["matrix"])
	if s.Code != cli.OK || fmt.Sprint(names) != "[part-1-of-2 part-2-of-2]" {
		t.Fatalf("exit %d: %v\n%s", s.Code, names, s.Log)
	}
	phase("run", "INPUT_PLAN="+plans[1], "INPUT_NAME="+names[1])
	r := phase("report")
	if r.Code == cli.OK || r.Outputs["conclusion"] != "error" {
		t.Errorf("a missing part: exit %d, %s\n%s", r.Code, r.Outputs["conclusion"], r.Log)
	}
	jobtest.CheckContains(t, "comment", w.BotComment().Body, "1 of 2 parts of the plan have no report: part-1-of-2")
	const again = "GITHUB_RUN_ATTEMPT=2" // the failed jobs are run again
	phase("run", again, "INPUT_PLAN="+plans[0], "INPUT_NAME="+names[0])
	r = phase("report", again)
	d, err := split.ReadDurations(bytes.NewReader(jobtest.ReadFile(t, r.Outputs["durations"])))
	if r.Code != cli.OK || err != nil || len(d) != 3 {
		t.Errorf("exit %d, %v, %v\n%s", r.Code, d, err, r.Log)
	}
	if strings.Contains(w.BotComment().Body, "part-missing") {
		t.Error("a part is missing in the comment")
	}
}
