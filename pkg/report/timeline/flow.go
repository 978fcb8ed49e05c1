// SPDX-License-Identifier: Apache-2.0

//go:build linux

package timeline

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// flowWords says what the gateway saw: who it was where that is known, what was asked
// for, and what became of it.
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
	return strings.Join(present(words), " ") + flowEnd(f)
}

func present(words []string) []string {
	var list []string
	for _, w := range words {
		if w != "" {
			list = append(list, w)
		}
	}
	return list
}

// flowEnd says how it ended: by which rule it was refused or would have been, what
// came of it otherwise, and how much went each way. What policy allowed and the gateway
// refused is told by the gateway's code: the rules that allowed it are not to blame.
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

// trafficWords counts what of the network a result tells of.
func trafficWords(c proposal.Counts) string {
	if c.Lookups+c.Connections+c.Requests+c.Datagrams == 0 {
		return ""
	}
	s := fmt.Sprintf("; network: %d lookups, %d connections, %d requests, %d refused", c.Lookups, c.Connections, c.Requests, c.NetRefused)
	if c.NetWatched > 0 {
		s += fmt.Sprintf(", %d would have been refused", c.NetWatched)
	}
	return s
}
