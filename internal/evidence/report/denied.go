// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// firstRefusal returns the first reason that refused r.
func firstRefusal(r proposal.Record) (proposal.Reason, bool) {
	for _, reason := range r.Decision.Reasons {
		if reason.Effect == r.Decision.Effect && !reason.Observed && !r.Runnable() {
			return reason, true
		}
	}
	return proposal.Reason{}, false
}

// invalidLine says how many proposals were refused before policy saw them.
func (p Page) invalidLine() []string {
	n := 0
	for _, r := range p.allRecords() {
		if r.Proposal.Invalid != nil {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	are := "are"
	if n == 1 {
		are = "is"
	}
	return []string{fmt.Sprintf("⛔ <b>%d proposal%s of the plan %s invalid; %s did not run.</b> The mistakes are listed below.", n, pluralS(n > 1), are, itThey(n))}
}
