// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"testing"
)

// A push to the default branch runs the plan and posts nothing; any other push runs nothing.
func TestAdmitPush(t *testing.T) {
	const payload = `{"ref":%q,"repository":{"id":1,"full_name":"mona/app","default_branch":"main"},"sender":{"id":2,"login":"mona","type":"User"}}`
	for _, tt := range []struct{ ref, phase, want string }{
		{"refs/heads/main", PhaseAuto, "run"},
		{"refs/heads/main", PhaseRun, "run"},
		{"refs/heads/main", PhaseReport, "nothing"},
		{"refs/heads/main", PhaseTrigger, "action.phase"},
		{"refs/heads/other", PhaseAuto, "nothing"},
		{"refs/heads/other", PhaseRun, "nothing"},
		{"refs/tags/main", PhaseRun, "nothing"},
		{"main", PhaseRun, "nothing"},
	} {
		e, err := ReadEvent("push", fmt.Appendf(nil, payload, tt.ref))
		if err != nil {
			t.Fatal(err)
		}
		r := Runner{Repository: "mona/app", EventName: "push", OS: "Linux", Arch: "X64"}
		if got := outcomeOfAdmit(t, r, e, Inputs{Phase: tt.phase, Plan: "plan.json"}, goodFacts); got != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.ref, tt.phase, got, tt.want)
		}
	}
	for _, text := range []string{`{}`, `{"ref":"refs/heads/"}`, `{"ref":5,"repository":{"id":1,"full_name":"mona/app","default_branch":"main"}}`} {
		if e, err := ReadEvent("push", []byte(text)); err == nil {
			t.Errorf("%s was read as %+v", text, e)
		}
	}
}
