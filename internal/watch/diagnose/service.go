// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"bytes"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// notStarted returns why r, the command of a service, did not start it, or nil.
func notStarted(r proposal.Record) *proposal.Cause {
	s, known := serviceOf(r)
	if !known || !r.Runnable() || r.Result == nil || r.Result.Status != proposal.Exited || r.Result.ExitCode == 0 {
		return nil
	}
	c := &proposal.Cause{Kind: causeService, Reason: noStart, Subject: s.name,
		Evidence: clipEvidence(lastLine(*r.Result)),
		Advice:   "The output of `service-" + s.name + "` is the end of the server's log."}
	if r.Result.ExitCode == 127 { // no such program
		c.Advice = "The server is not installed on the host. Install it before fumehood runs: `sudo apt-get install " +
			s.pack + "`."
	}
	return c
}

// serviceOf returns the service that r starts. Its id is service-NAME, or longer.
func serviceOf(r proposal.Record) (service, bool) {
	i := slices.IndexFunc(services, func(s service) bool {
		return r.Proposal.Origin == proposal.OriginService && s.pack != "" &&
			strings.Contains(r.Proposal.ID+"-", "service-"+s.name+"-")
	})
	if i < 0 {
		return service{}, false
	}
	return services[i], true
}

// lastLine returns the last line that a command printed.
func lastLine(r proposal.Result) string {
	for _, s := range []proposal.Stream{r.Stdout, r.Stderr} {
		pieces := streamParts(s)
		if text := bytes.TrimSpace(pieces[len(pieces)-1]); len(text) > 0 {
			return string(text[bytes.LastIndexByte(text, '\n')+1:])
		}
	}
	return ""
}

// adviseService replaces the advice of a missing service that the configuration already
// starts.
func adviseService(before []proposal.Record, c *proposal.Cause) {
	if c == nil || c.Reason != noService {
		return
	}
	for _, r := range slices.Backward(before) {
		if s, ok := serviceOf(r); ok && s.name == c.Subject {
			c.Config, c.Advice = nil, "The command `service-"+s.name+"` did not start it."
			if r.Result != nil && r.Result.Succeeded() {
				c.Advice = "The command `service-" + s.name +
					"` started it, and it has ended since, or it listens elsewhere."
			}
			return
		}
	}
}
