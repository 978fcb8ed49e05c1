// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits for the past that is held in memory at once.
const (
	maxRuns   = 10_000
	maxActs   = 200_000 // of all runs
	maxDone   = 5_000   // different programs of one command, and as many connections
	maxHeld   = 512 << 20
	maxReport = 64 << 20
	// maxTraffic is the most bytes of a Reach, so that no sum overflows.
	maxTraffic = 1 << 50
)

// A Past holds what some runs proposed and did.
type Past struct {
	Runs []Run
	// Left lists what was found but not used.
	Left []Left

	parse func(proposal.Proposal) proposal.Analysis
	acts  int
	held  int64
	known map[string]map[[sha256.Size]byte]bool // the facts of runs, by run id
}

// A Run is one past run.
type Run struct {
	ID       string
	Source   string // path of the file
	Observed bool   // it was in observe mode
	// NetworkObserved says that nothing about the network was enforced. Its Acts have Reaches.
	NetworkObserved bool
	// Verified says that a log's signatures are valid. It is false for a report.
	Verified bool
	// Sealed says that the log is complete.
	Sealed bool
	// Context is what the run was about. Of a run that does not have it, only the time is known.
	Context proposal.Context
	Acts    []Act
}

// A Left is an item that was not used.
type Left struct {
	Source string `json:"source"`
	ID     string `json:"id,omitempty"` // of a proposal; "" for the whole run or file
	Why    string `json:"why"`
}

// An Act is one proposal, the decision about it, and what it did.
type Act struct {
	Proposal proposal.Proposal
	Analysis proposal.Analysis // by this version's parser
	Decision proposal.Decision
	Approved bool
	Ran      bool // it was started in a sandbox
	Execs    []Exec
	Flows    []Flow
	Reaches  []proposal.Reach // what was tried in the network, if it was only observed
	Omitted  int              // programs and connections that the past does not have in full
	seen     map[string]int
}

// An Exec is one program start that was decided, with the number of times.
type Exec struct {
	Exec     proposal.Exec
	Decision proposal.ExecDecision
	Times    int
}

// A Flow is one step of a connection, with the number of times.
type Flow struct {
	Egress   proposal.Egress
	Decision proposal.EgressDecision
	Times    int
}

// Text returns what the proposal would run, in one form for all proposals.
func (d Act) Text() string {
	if d.Analysis.Canonical != "" {
		return d.Analysis.Canonical
	}
	switch d.Proposal.Form() {
	case "run":
		return d.Proposal.Run
	case "argv":
		return strings.Join(d.Proposal.Argv, " ")
	}
	return d.Proposal.Code
}

// addEvents adds the events of d for which everything that the decision depends on is known.
func (d *Act) addEvents(events []proposal.Event) {
	for _, e := range events {
		switch {
		case e.Exec != nil && (e.Kind == proposal.EventExec || e.Kind == proposal.EventLoad ||
			e.Kind == proposal.EventRefused):
			if x := e.Exec; e.Decision == nil || isCut(x.Path) || isCut(x.Asked) || isCut(x.Script) ||
				isCut(x.ParentPath) || isCut(e.Program) || cutELF(x.ELF) || isCut(x.Cwd) ||
				isShortened(x.Env, maxNames) || isShortened(x.Same, maxPaths) || x.Path == "" || x.Layer == "" {
				d.Omitted++
				continue
			}
			x := *e.Exec
			x.From = e.Program
			d.addExec(x, *e.Decision)
		case e.Flow != nil:
			if g := e.Flow.Egress; g.Kind == "" || isCut(g.Name) || isCut(g.Path) || isCut(g.Method) || isCut(g.SNI) ||
				isShortened(g.Registries, maxNames) || len(g.Secrets) >= maxSecrets || len(e.Flow.Decision.Rules) == 0 {
				d.Omitted++
				continue
			}
			d.addFlow(e.Flow.Egress, e.Flow.Decision)
		}
	}
}

// isCut reports whether the recorder has truncated text.
func isCut(text string) bool { return strings.HasSuffix(text, "…") }

func cutELF(e *proposal.ELF) bool { return e != nil && (isCut(e.Interpreter) || isCut(e.Soname)) }

// What internal/watch/observe keeps of a list: so many words, and so many bytes of names or paths.
const (
	maxWords   = 64
	maxNames   = 256
	maxPaths   = 4096
	maxSecrets = 8
)

// isShortened reports whether list may be truncated, because it is as long as the
// recorder's limit. For argv, the record says so itself.
func isShortened(list []string, limit int) bool {
	return len(list) >= maxWords || len(strings.Join(list, ""))+len("…") > limit || slices.ContainsFunc(list, isCut)
}

func (d *Act) addExec(x proposal.Exec, decision proposal.ExecDecision) {
	x.Pid, x.Parent = 0, 0
	if i, known := d.findOrPlace("exec", x, decision.Effect, len(d.Execs)); known {
		d.Execs[i].Times++
	} else if i >= 0 {
		d.Execs = append(d.Execs, Exec{x, decision, 1})
	}
}

// addReach adds a network event, or what a report says of several.
func (d *Act) addReach(r proposal.Reach) {
	count, sent, received := r.Count, r.Sent, r.Received
	r.Count, r.Sent, r.Received, r.Calls, r.Message, r.Suggestion = 0, 0, 0, nil, "", ""
	i, known := d.findOrPlace("reach", r, proposal.Deny, len(d.Reaches))
	switch {
	case i < 0:
		return
	case !known:
		d.Reaches = append(d.Reaches, r)
	}
	was := &d.Reaches[i]
	was.Count, was.Sent, was.Received = was.Count+count, min(maxTraffic, was.Sent+sent),
		min(maxTraffic, was.Received+received)
}

func (d *Act) addFlow(x proposal.Egress, decision proposal.EgressDecision) {
	if i, known := d.findOrPlace("egress", x, decision.Effect, len(d.Flows)); known {
		d.Flows[i].Times++
	} else if i >= 0 {
		d.Flows = append(d.Flows, Flow{x, decision, 1})
	}
}

// findOrPlace returns the index of an equal x, or else of a new one; -1 if d is full.
func (d *Act) findOrPlace(kind string, x any, effect proposal.Effect, next int) (int, bool) {
	data, err := json.Marshal(x)
	if err != nil {
		d.Omitted++
		return -1, false
	}
	key := fmt.Sprintf("%s %s %s", kind, effect, data)
	if i, known := d.seen[key]; known {
		return i, true
	}
	if next >= maxDone {
		d.Omitted++
		return -1, false
	}
	if d.seen == nil {
		d.seen = map[string]int{}
	}
	d.seen[key] = next
	return next, false
}

// CountProposals counts the proposals of all runs.
func (p Past) CountProposals() int { return p.acts }

// UnverifiedFiles returns the files without a verified signature.
func (p Past) UnverifiedFiles() []string {
	var files []string
	for _, r := range p.Runs {
		if !r.Verified {
			files = append(files, r.Source)
		}
	}
	return files
}
