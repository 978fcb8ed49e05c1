// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// flowWords describes what the gateway saw: the process if it is known, the request, and
// the outcome.
func flowWords(e proposal.Event) string {
	g, f := e.Flow.Egress, *e.Flow
	who := "[?]"
	if e.Pid != 0 {
		who = fmt.Sprintf("[%d<%d]", e.Pid, e.Parent)
	}
	words := []string{who}
	if e.Program != "" {
		words = append(words, path.Base(e.Program))
	}
	if e.Kind == proposal.EventRequest {
		words = append(words, g.Method, g.Protocol+"://"+g.Destination()+g.Path)
	} else {
		words = append(words, g.Protocol, g.Destination(), g.Type)
	}
	if g.Name != "" && g.Address != "" {
		words = append(words, "= "+g.Address)
	}
	if g.SNI != "" && g.SNI != g.Name {
		words = append(words, "named "+g.SNI)
	}
	if f.Status != 0 {
		words = append(words, fmt.Sprintf("answered %d", f.Status))
	}
	return strings.Join(presentWords(words), " ") + flowEnd(f)
}

func presentWords(words []string) []string {
	var list []string
	for _, w := range words {
		if w != "" {
			list = append(list, w)
		}
	}
	return list
}

// flowEnd describes how it ended: the rule that refused it or would have, otherwise the
// outcome, and the bytes in each direction. If policy allowed it and the gateway refused
// it, the gateway's code is shown, because no rule was the reason.
func flowEnd(f proposal.Flow) string {
	s := ""
	if f.Sent+f.Received > 0 {
		s = fmt.Sprintf(", %d bytes out, %d in", f.Sent, f.Received)
	}
	if f.WallMS > 0 {
		s += ", " + (time.Duration(f.WallMS) * time.Millisecond).String()
	}
	d := proposal.ExecDecision{Rules: f.Decision.Rules, Reason: f.Decision.Reason}
	switch {
	case f.Refused() && ruleOf(d) != "" && !(f.Decision.Effect == proposal.Allow && d.Reason == nil):
		s += ": refused by " + ruleOf(d)
	case f.Refused():
		s += ": refused: " + f.Code
	case f.Code != "":
		s += ": " + f.Code
	}
	if f.Decision.Observed {
		s += " by " + ruleOf(d) + " (observed only)"
	}
	return s
}

// trafficWords returns the counts of network events in a result.
func trafficWords(c proposal.Counts) string {
	if c.Lookups+c.Connections+c.Requests+c.Datagrams == 0 {
		return ""
	}
	s := fmt.Sprintf("; network: %d lookups, %d connections, %d requests, %d refused", c.Lookups, c.Connections,
		c.Requests, c.NetRefused)
	if c.NetWatched > 0 {
		s += fmt.Sprintf(", %d would have been refused", c.NetWatched)
	}
	return s
}
