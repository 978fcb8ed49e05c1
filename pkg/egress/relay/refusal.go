// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A refusal is why something does not pass.
type refusal struct {
	code    string // of the Flow
	message string
	hint    string // what would be allowed instead, if anything
	rule    string // policy's, or of code
	status  int    // 403, if it is not set
	last    bool   // of its connection
}

// reason is what a Flow says of something that the gateway itself refused.
func reason(code, message string) *proposal.Reason {
	return &proposal.Reason{Rule: "egress." + code, Effect: proposal.Deny, Message: message, Command: -1}
}

// denied is the refusal that policy's answer is.
func denied(d proposal.EgressDecision) refusal {
	r := refusal{code: "policy", rule: "egress.no-rule", message: "no rule allows it"}
	if d.Reason != nil {
		r.rule, r.message, r.hint = d.Reason.Rule, d.Reason.Message, d.Reason.Suggestion
	}
	return r
}

// RefusedHeader names the rule in an answer that is the gateway's own.
const RefusedHeader = "Fumehood-Refused"

// answer sends r to the program, in words for a person.
func (r refusal) answer(w http.ResponseWriter, what string) int {
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

// oneLine keeps what a header or a line may hold.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, text)
}
