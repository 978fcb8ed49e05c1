// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What is advised after a limit is read back: by the reader of plans, and by that of the
// configuration where the advice names its file. What is read is more than was granted.
func TestAdviceIsReadBack(t *testing.T) {
	for _, wall := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 90 * time.Second, time.Minute, 10 * time.Minute,
		30 * time.Minute, time.Hour, 61 * time.Second, 10*time.Hour + 5*time.Minute, 12 * time.Hour, 24 * time.Hour} {
		for _, timeout := range []time.Duration{0, wall} {
			granted := proposal.Limits{Wall: proposal.Duration(wall)}
			p := heldAdvice(t, proposal.TimedOut, "wall "+granted.Wall.String(), granted, proposal.Duration(timeout))
			if p != nil && max(p.Timeout, limitsOf(p).Wall) != 2*granted.Wall {
				t.Errorf("%s is advised as %+v", 2*wall, p)
			}
		}
	}
	for _, size := range []proposal.Bytes{1, 1000, 1 << 10, 1500, 512 * proposal.MiB, 3 * proposal.GiB, 700 * proposal.GiB} {
		if p := heldAdvice(t, proposal.OutOfMemory, "", proposal.Limits{Memory: size}, 0); p != nil && p.Limits.Memory != 2*size {
			t.Errorf("%s is advised as %+v", 2*size, p.Limits)
		}
		if p := heldAdvice(t, proposal.DiskLimit, "", proposal.Limits{Disk: size}, 0); p != nil && p.Limits.Disk != 2*size {
			t.Errorf("%s is advised as %+v", 2*size, p.Limits)
		}
	}
	for _, pids := range []int{1, 512, 4194304} {
		if p := heldAdvice(t, proposal.ProcessLimit, "", proposal.Limits{Pids: pids}, 0); p != nil && p.Limits.Pids != 2*pids {
			t.Errorf("%d processes are advised as %+v", 2*pids, p.Limits)
		}
	}
}

func limitsOf(p *proposal.Proposal) proposal.Limits {
	if p.Limits == nil {
		return proposal.Limits{}
	}
	return *p.Limits
}

// heldAdvice reads the advice for a command that a limit ended, and returns a proposal with it,
// or nil if there is none.
func heldAdvice(t *testing.T, status proposal.Status, limit string, granted proposal.Limits, timeout proposal.Duration) *proposal.Proposal {
	t.Helper()
	words := limitAdvice(proposal.Record{Proposal: proposal.Proposal{Timeout: timeout}, Decision: proposal.Decision{Grant: &proposal.Grant{Limits: granted}},
		Result: &proposal.Result{Status: status, Limit: limit}})
	parts := strings.Split(words, "`")
	if len(parts) < 3 {
		if words == "" {
			t.Errorf("no advice after %s with %+v", status, granted)
		}
		return nil
	}
	p, problems := plan.Decode([]byte("schema: fumehood.plan/v1\nproposals:\n  - id: a\n    run: ls\n    "+parts[1]+"\n"), "advice.yaml")
	if problems = append(problems, p.Refused()...); len(problems) > 0 {
		t.Fatalf("%s: %v", words, problems)
	}
	if len(parts) > 3 {
		if _, problems := config.Decode([]byte("schema: fumehood.config/v1\n"+parts[1]+"\n"), parts[3]); len(problems) > 0 {
			t.Fatalf("%s: %v", words, problems)
		}
	}
	return &p.Proposals[0]
}
