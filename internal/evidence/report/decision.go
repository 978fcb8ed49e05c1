// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Decision writes what was decided about r's proposal: the effect, and each reason with
// what would be allowed instead.
func Decision(w io.Writer, r proposal.Record) {
	fmt.Fprintf(w, "%-5s %s\n", r.Decision.Effect, terminal.EscapeLine(r.Proposal.ID))
	for _, reason := range r.Decision.Reasons {
		fmt.Fprintf(w, "      %s: %s\n", terminal.EscapeLine(reason.Rule), terminal.EscapeLine(reason.Message))
		if reason.Suggestion != "" {
			fmt.Fprintf(w, "      instead: %s\n", terminal.EscapeLine(reason.Suggestion))
		}
		for _, text := range reason.Alternatives {
			fmt.Fprintf(w, "      allowed: %s\n", terminal.EscapeLine(text))
		}
	}
}
