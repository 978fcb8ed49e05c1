// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A refusal says why something is not forwarded.
type refusal struct {
	code    string // for the Flow
	message string
	hint    string // what would be allowed instead, if anything
	rule    string // policy's; if empty, it follows from code
	status  int    // 0 means 403
	last    bool   // the last on its connection
}

// refusalReason returns the Reason in a Flow for something that the gateway itself
// refused.
func refusalReason(code, message string) *proposal.Reason {
	return &proposal.Reason{Rule: "egress." + code, Effect: proposal.Deny, Message: message, Command: -1}
}

// denyRefusal returns the refusal for a decision of policy.
func denyRefusal(d proposal.EgressDecision) refusal {
	r := refusal{code: "policy", rule: "egress.no-rule", message: "no rule allows it"}
	if d.Reason != nil {
		r.rule, r.message, r.hint = d.Reason.Rule, d.Reason.Message, d.Reason.Suggestion
	}
	return r
}

// unansweredRefusal returns the refusal for a question that policy has not answered.
func unansweredRefusal(ctx context.Context) refusal {
	if ctx.Err() != nil {
		return refusal{code: "cut", message: "it ended before policy had answered"}
	}
	return refusal{code: "policy", message: "policy could not be asked"}
}

// RefusedHeader names the rule, in answers that the gateway itself gives.
const RefusedHeader = "Fumehood-Refused"

// writeAnswer sends r to the program, as text for a person.
func (r refusal) writeAnswer(w http.ResponseWriter, what string) int {
	if r.status == 0 {
		r.status = http.StatusForbidden
	}
	if r.rule == "" {
		r.rule = "egress." + r.code
	}
	var text strings.Builder
	fmt.Fprintf(&text, "fumehood: refused %s\n%s (%s)\n", what, oneLine(r.message), oneLine(r.rule))
	if r.hint != "" {
		fmt.Fprintf(&text, "hint: %s\n", oneLine(r.hint))
	}
	h := w.Header()
	clear(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set(RefusedHeader, oneLine(r.rule))
	if r.last {
		h.Set("Connection", "close")
	}
	w.WriteHeader(r.status)
	io.WriteString(w, text.String())
	return r.status
}

// oneLine keeps only characters that a header or a line may contain.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}
