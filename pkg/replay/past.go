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

// Bounds on the past that is held at once.
const (
	mostRuns   = 10_000
	mostDeeds  = 200_000 // of all runs
	mostDone   = 5_000   // different programs, and as many connections, of one command
	mostHeld   = 512 << 20
	mostReport = 64 << 20
)

// A Past is what some runs proposed and did.
type Past struct {
	Runs []Run
	// Left says what was found and not taken.
	Left []Left

	parse func(proposal.Proposal) proposal.Analysis
	deeds int
	held  int64
	known map[string]map[[sha256.Size]byte]bool // what runs tell, by their ids
}

// A Run is one run.
type Run struct {
	ID       string
	Source   string // the file
	Observed bool   // it was in observe mode
	// Verified says that a log's signatures hold. A report has none.
	Verified bool
	// Sealed says that the log is complete.
	Sealed bool
	Deeds  []Deed
}

// A Left is something that was not taken.
type Left struct {
	Source string `json:"source"`
	ID     string `json:"id,omitempty"` // of a proposal; "" for the whole
	Why    string `json:"why"`
}

// A Deed is one proposal, what was decided about it, and what it did.
type Deed struct {
	Proposal proposal.Proposal
	Analysis proposal.Analysis // as this version parses it
	Decision proposal.Decision
	Approved bool
	Ran      bool // a sandbox began it
	Execs    []Exec
	Flows    []Flow
	Omitted  int // programs and connections that are not here in full
	seen     map[string]int
}

// An Exec is one program that was asked about, however often.
type Exec struct {
	Exec     proposal.Exec
	Decision proposal.ExecDecision
	Times    int
}

// A Flow is one step of a connection, however often.
type Flow struct {
	Egress   proposal.Egress
	Decision proposal.EgressDecision
	Times    int
}

// Text is what the proposal would run, in one form for all proposals.
func (d Deed) Text() string {
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

// add takes what was seen of d, as far as all that a decision rests on is there.
func (d *Deed) add(events []proposal.Event) {
	for _, e := range events {
		switch {
		case e.Exec != nil && (e.Kind == proposal.EventExec || e.Kind == proposal.EventRefused):
			if x := e.Exec; e.Decision == nil || cut(x.Path) || cut(x.Script) || cut(x.ParentPath) || cut(e.Program) || cutELF(x.ELF) || cut(x.Cwd) || shortened(x.Env, mostNames) || shortened(x.Same, mostPaths) || x.Path == "" || x.Layer == "" {
				d.Omitted++
				continue
			}
			x := *e.Exec
			x.From = e.Program
			d.exec(x, *e.Decision)
		case e.Flow != nil:
			if g := e.Flow.Egress; g.Kind == "" || cut(g.Name) || cut(g.Path) || cut(g.Method) || cut(g.SNI) || shortened(g.Registries, mostNames) || len(g.Secrets) >= mostSecrets || len(e.Flow.Decision.Rules) == 0 {
				d.Omitted++
				continue
			}
			d.flow(e.Flow.Egress, e.Flow.Decision)
		}
	}
}

// cut reports whether the recorder has shortened text.
func cut(text string) bool { return strings.HasSuffix(text, "…") }

func cutELF(e *proposal.ELF) bool { return e != nil && (cut(e.Interpreter) || cut(e.Soname)) }

// What pkg/observe keeps of a list: so many words, and so many bytes of names or paths.
const (
	mostWords   = 64
	mostNames   = 256
	mostPaths   = 4096
	mostSecrets = 8
)

// shortened reports whether list may lack its end, being as long as the recorder keeps
// it. Of argv the record says so itself.
func shortened(list []string, most int) bool {
	return len(list) >= mostWords || len(strings.Join(list, ""))+len("…") > most || slices.ContainsFunc(list, cut)
}

func (d *Deed) exec(x proposal.Exec, decision proposal.ExecDecision) {
	x.Pid, x.Parent = 0, 0
	if i, known := d.place("exec", x, decision.Effect, len(d.Execs)); known {
		d.Execs[i].Times++
	} else if i >= 0 {
		d.Execs = append(d.Execs, Exec{x, decision, 1})
	}
}

func (d *Deed) flow(x proposal.Egress, decision proposal.EgressDecision) {
	if i, known := d.place("egress", x, decision.Effect, len(d.Flows)); known {
		d.Flows[i].Times++
	} else if i >= 0 {
		d.Flows = append(d.Flows, Flow{x, decision, 1})
	}
}

// place finds where the like of x stands, or where it would; -1 when there is no room.
func (d *Deed) place(kind string, x any, effect proposal.Effect, next int) (int, bool) {
	data, err := json.Marshal(x)
	if err != nil {
		d.Omitted++
		return -1, false
	}
	key := fmt.Sprintf("%s %s %s", kind, effect, data)
	if i, known := d.seen[key]; known {
		return i, true
	}
	if next >= mostDone {
		d.Omitted++
		return -1, false
	}
	if d.seen == nil {
		d.seen = map[string]int{}
	}
	d.seen[key] = next
	return next, false
}

// Proposals counts those of all runs.
func (p Past) Proposals() int { return p.deeds }

// Unverified are the files that nothing vouches for.
func (p Past) Unverified() []string {
	var files []string
	for _, r := range p.Runs {
		if !r.Verified {
			files = append(files, r.Source)
		}
	}
	return files
}
