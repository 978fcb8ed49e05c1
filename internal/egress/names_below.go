// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"sync"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// NamesBelow counts the names that a run looks up below each suffix: commands of one run
// must not carry more out together than one of them may. The zero value has none.
type NamesBelow struct {
	mu     sync.Mutex
	looked map[string]map[string]bool // by suffix
}

// Limit returns policy's answer d about x, or a refusal if x is one name too many. Names that were
// allowed before still are.
func (n *NamesBelow) Limit(x proposal.Egress, d proposal.EgressDecision) proposal.EgressDecision {
	if d.Effect != proposal.Allow || d.Below == "" {
		return d
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.looked == nil {
		n.looked = map[string]map[string]bool{}
	}
	names := n.looked[d.Below]
	if names == nil {
		names = map[string]bool{}
		n.looked[d.Below] = names
	}
	if !names[x.Name] && len(names) >= maxNamesBelow {
		return tooMany(d)
	}
	names[x.Name] = true
	return d
}

func tooMany(d proposal.EgressDecision) proposal.EgressDecision {
	const rule = "egress.names"
	return proposal.EgressDecision{Effect: proposal.Deny, Rules: append(d.Rules, rule), Reason: &proposal.Reason{
		Rule: rule, Effect: proposal.Deny, Command: -1,
		Message:    fmt.Sprintf("this run has looked up %d names below %s", maxNamesBelow, d.Below[1:]),
		Suggestion: "request the hosts by name, or let the policy that grants them say many_names",
	}}
}

// maxNamesBelow is how many names below one granted suffix a run may look up. Each name is
// information for the owner of the suffix, and real hosts have few names.
const maxNamesBelow = 64
