// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"

	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/comment"
)

// Steps with different inputs name or artifact never have one section or check run, however these look.
func TestSources(t *testing.T) {
	sources, checks := map[comment.Source]action.Inputs{}, map[string]action.Inputs{}
	for _, in := range []action.Inputs{{}, {Name: "lint"}, {Artifact: "lint"}, {Name: "lint", Artifact: "lint"}, {Name: "lint-lint"}, {Artifact: "lint-lint"}} {
		j := &Job{in: in, runner: action.Runner{Repository: "a/b", WorkflowRef: "a/b/.github/workflows/ci.yml@refs/heads/main", Job: "unit"}}
		s := j.source(Request{})
		if other, there := sources[s]; there {
			t.Errorf("%+v and %+v are both %+v", in, other, s)
		}
		if other, there := checks[checkName(s)]; there {
			t.Errorf("the check runs of %+v and %+v are both %q", in, other, checkName(s))
		}
		sources[s], checks[checkName(s)] = in, in
	}
	if s := (&Job{in: action.Inputs{Artifact: defaultArtifact}, runner: action.Runner{Job: "unit"}}).source(Request{}); s.Name != "" {
		t.Errorf("the default artifact is in %+v", s)
	}
}
