// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxNotes is how many destinations the notes of one command name.
const maxNotes = 8

// notes says in a command's error output which hosts policy refused it, each once. To the
// program a refused host does not exist, and clients explain that as a failure of DNS.
type notes struct {
	mu   sync.Mutex
	to   *sandbox.Notes
	said map[string]bool
}

// beginCommand makes to the notes of the command that runs.
func (n *notes) beginCommand(to *sandbox.Notes) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.to, n.said = to, map[string]bool{}
}

// noteRefusal notes a refusal. Requests have an answer that explains it, and a question for
// another type than an address is no attempt to connect.
func (n *notes) noteRefusal(x proposal.Egress, d proposal.EgressDecision) {
	lookup := x.Kind == points.EgressLookup
	if d.Effect == proposal.Allow || d.Reason == nil || x.Kind == points.EgressRequest ||
		lookup && x.Type != "A" && x.Type != "AAAA" {
		return
	}
	where := x.Destination()
	if lookup {
		where = x.Name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.said[where] || len(n.said) > maxNotes {
		return
	}
	n.said[where] = true
	if len(n.said) > maxNotes {
		n.to.Add("fumehood: the network policy refused further hosts")
		return
	}
	n.to.Add(replaceUnprintable(fmt.Sprintf("fumehood: the network policy refused %s (%s): %s", where, d.Reason.Rule,
		cmp.Or(d.Reason.Suggestion, d.Reason.Message))))
}

// replaceUnprintable keeps what a terminal shows as it is.
func replaceUnprintable(line string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, line)
}
