// SPDX-License-Identifier: Apache-2.0

package job

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
)

// Jobs of a run that differ by id or by the input name have different artifacts, and the job that
// reports finds both in the name.
func TestArtifactNames(t *testing.T) {
	seen := map[string][2]string{}
	long := strings.Repeat("j", 80)
	for _, job := range []string{"fumehood", "a", "a-b", "a-b-c", "part-1-of-2", long, long + "2"} {
		for _, name := range []string{"", "b", "b.c", "c", "part-1-of-2", "a-b"} {
			j := &Job{in: action.Inputs{Artifact: "fumehood", Name: name}, runner: action.Runner{Job: job, Attempt: 2}}
			full := j.artifactName()
			if other, there := seen[full]; there || len(full) > 64 {
				t.Errorf("%q and %q have the artifact %q", [2]string{job, name}, other, full)
			}
			seen[full] = [2]string{job, name}
			gotJob, gotName := j.readArtifactName(full)
			if gotName != name || gotJob != job && len(job) < 50 {
				t.Errorf("%q is of job %q and name %q, want %q and %q", full, gotJob, gotName, job, name)
			}
		}
	}
	if got := (&Job{runner: action.Runner{Job: "a", Attempt: 2}}).artifactName(); got != "" {
		t.Errorf("no artifact is %q", got)
	}
}

func TestLabelArtifacts(t *testing.T) {
	j := &Job{in: action.Inputs{Artifact: "fumehood"}}
	for names, want := range map[string]string{
		"fumehood":                                        "",
		"fumehood-unit":                                   "",
		"fumehood-unit.linux@2":                           "linux",
		"fumehood-unit fumehood-lint":                     "unit lint",
		"fumehood-unit.a fumehood-unit.b":                 "a b",
		"fumehood-unit.a fumehood-lint.a fumehood-lint.b": "unit.a lint.a b",
		"fumehood-a fumehood-b.a":                         "a b.a",
	} {
		var artifacts []github.Artifact
		for _, name := range strings.Fields(names) {
			artifacts = append(artifacts, github.Artifact{Name: name})
		}
		labels := j.labelArtifacts(artifacts)
		var got []string
		for _, a := range artifacts {
			got = append(got, labels[a.Name])
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s: %s", names, diff)
		}
	}
}
