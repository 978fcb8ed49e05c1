// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A prediction compares what parse found in a proposal with what ran.
type prediction struct {
	named   int      // starts of programs that the proposal names, its first one included
	below   int      // starts by those, or further down
	others  int      // starts that neither explains
	strange []string // names of those
}

func (p prediction) ran() int { return p.named + p.below + p.others }

// predict sorts every start of a program that began. What the shell itself starts
// must be named in the text that was decided, by the name that the shell gives it;
// whatever lies below a program that was is explained by it.
func predict(r proposal.Record) prediction {
	var p prediction
	o := r.Result.Observations
	names := predicted(r.Analysis)
	shell := r.Proposal.RunsShell()
	explained := make([]bool, len(o.Programs))
	for i, node := range o.Programs {
		match := names[path.Base(node.Path)]
		switch {
		case node.Parent < 0 || node.Parent >= i:
			match = i == 0 // what the sandbox started
			explained[i] = match
		case node.Parent == 0 && shell:
			match = match || names[node.Name] || node.Script != "" && names[path.Base(node.Script)]
			explained[i] = match
		default:
			explained[i] = explained[node.Parent]
		}
		p.count(node, match && explained[i], explained[i], i == 0 && shell)
	}
	return p
}

// count enters one node. What was left out below a shell is explained by nothing.
func (p *prediction) count(node proposal.Program, match, explained, shell bool) {
	switch {
	case match:
		p.named += node.Runs
	case explained:
		p.below += node.Runs
	default:
		p.others += node.Runs
		if node.Runs > 0 && !slices.Contains(p.strange, node.Name) {
			p.strange = append(p.strange, node.Name)
		}
	}
	if explained && !shell {
		p.below += node.Omitted
		return
	}
	p.others += node.Omitted
}

// predicted are the last names of all programs that a proposal's text names,
// wrappers included.
func predicted(a proposal.Analysis) map[string]bool {
	names := map[string]bool{}
	for _, c := range a.Commands {
		for _, word := range append([]string{c.Program}, c.Via...) {
			if f := strings.Fields(word); len(f) > 0 {
				names[path.Base(f[0])] = true
			}
		}
	}
	return names
}
