// SPDX-License-Identifier: Apache-2.0

package action

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// A flow is the part of a workflow that an example and the YAML of a refusal must
// have in common.
type flow struct {
	Permissions map[string]string
	Jobs        map[string]flowJob
}

type flowJob struct {
	Needs       any
	If          string
	Permissions map[string]string
	Outputs     map[string]string
	Steps       []struct{ With map[string]string }
}

// essence reduces a workflow to what the YAML of a hint and an example must have in
// common: each job's permissions, conditions, outputs and inputs, except for the
// plan and optional ones.
func essence(t *testing.T, text string) map[string]flowJob {
	t.Helper()
	var f flow
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for name, job := range f.Jobs {
		if len(job.Permissions) == 0 {
			job.Permissions = f.Permissions
		}
		delete(job.Permissions, "checks")
		for _, step := range job.Steps {
			for _, optional := range []string{"plan", "check-run"} {
				delete(step.With, optional)
			}
		}
		f.Jobs[name] = job
	}
	return f.Jobs
}

func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../.github/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A user who pastes the YAML of a refusal is not refused again: it has the
// permissions, conditions and inputs of the workflows that the end-to-end tests run.
func TestRefusalsAgreeWithExamples(t *testing.T) {
	run, report, found := strings.Cut(yamlTwoWorkflows, "---\n")
	if !found {
		t.Fatal("the two workflows are not two")
	}
	for name, text := range map[string]string{"fumehood.yml": run, "fumehood-report.yml": report, "bot.yml": yamlThreeJobs} {
		t.Run(name, func(t *testing.T) {
			want, got := essence(t, example(t, name)), essence(t, text)
			for _, filtered := range []string{"report", "trigger"} {
				if job, ok := want[filtered]; ok && job.Needs == nil {
					job.If = "" // a filter that only avoids unnecessary runs
					want[filtered] = job
				}
			}
			if len(want) == 0 {
				t.Fatal("the example has no jobs")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-example +refusal):\n%s", diff)
			}
		})
	}
}
