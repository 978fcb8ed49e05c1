// SPDX-License-Identifier: Apache-2.0

package sandbox

import "github.com/fumehood/fumehood/pkg/proposal"

// The sources of a proposal.Figure.
const (
	sourceClock   = "clock"
	sourceCgroup  = "cgroup"
	sourceSandbox = "sandbox"
)

// recordKernelCounts records what gVisor's kernel counted.
func (c *command) recordKernelCounts(processes, written uint64) {
	c.processes = proposal.Figure{Value: int64(processes), Source: sourceSandbox}
	c.written = proposal.Figure{Value: int64(written), Source: sourceSandbox}
}

// recordUsage fills in the resources that the command used, and who measured them. The
// cgroup's figures include the sandbox's own use while the command ran; of its memory,
// only what was added to that in use before.
func (c *command) recordUsage(r *proposal.Result, after usage) {
	cgroup := func(v int64) proposal.Figure {
		return proposal.Figure{Value: v, Source: sourceCgroup}
	}
	r.Usage = &proposal.Usage{
		Wall:      proposal.Figure{Value: r.WallMS, Source: sourceClock},
		CPUUser:   cgroup((after.user - c.before.user).Milliseconds()),
		CPUSystem: cgroup((after.system - c.before.system).Milliseconds()),
		Processes: c.processes,
		Written:   c.written,
	}
	if !c.background {
		r.Usage.PeakMemory = cgroup(int64(max(0, r.PeakMem-c.held)))
	}
}
