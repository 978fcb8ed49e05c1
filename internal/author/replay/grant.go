// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A grantDifference is one item of a grant, before and now.
type grantDifference struct {
	name, from, to string
	order          int // compares from with to
}

// diffGrants returns the differences between two grants.
func diffGrants(from, to proposal.Grant) []grantDifference {
	a, b := from.Limits, to.Limits
	list := []grantDifference{
		{"wall", fmt.Sprint(a.Wall.Std()), fmt.Sprint(b.Wall.Std()), cmp.Compare(a.Wall, b.Wall)},
		{"cpus", fmt.Sprint(a.CPUs), fmt.Sprint(b.CPUs), cmp.Compare(a.CPUs, b.CPUs)},
		{"memory", a.Memory.String(), b.Memory.String(), cmp.Compare(a.Memory, b.Memory)},
		{"pids", fmt.Sprint(a.Pids), fmt.Sprint(b.Pids), cmp.Compare(a.Pids, b.Pids)},
		{"disk", a.Disk.String(), b.Disk.String(), cmp.Compare(a.Disk, b.Disk)},
		{"files", fmt.Sprint(a.Files), fmt.Sprint(b.Files), cmp.Compare(a.Files, b.Files)},
		{"output", a.Output.String(), b.Output.String(), cmp.Compare(a.Output, b.Output)},
	}
	for _, kind := range from.Exec {
		if !slices.Contains(to.Exec, kind) {
			list = append(list, grantDifference{"programs", kind, "none", 1})
		}
	}
	for _, kind := range to.Exec {
		if !slices.Contains(from.Exec, kind) {
			list = append(list, grantDifference{"programs", "none", kind, -1})
		}
	}
	return slices.DeleteFunc(list, func(t grantDifference) bool { return t.order == 0 })
}

// compareGrants compares the old and the new grant for a proposal whose decision is
// unchanged. Items that become less and items that become more are separate changes.
func (o *Outcome) compareGrants(j job, to proposal.Decision) {
	was := j.act.Decision
	if was.Grant == nil || to.Grant == nil || was.Effect != to.Effect {
		return
	}
	all := diffGrants(*was.Grant, *to.Grant)
	for _, less := range []bool{true, false} {
		var before, after []string
		for _, t := range all {
			if (t.order > 0) == less {
				before, after = append(before, t.name+" "+t.from), append(after, t.name+" "+t.to)
			}
		}
		if len(before) > 0 {
			o.Changes = append(o.Changes, Change{Kind: KindGrant, Run: j.run, ID: j.act.Proposal.ID, Text: j.act.Text(),
				Times: 1, Less: less,
				From: Answer{Effect: was.Effect.String(), Message: strings.Join(before, ", ")},
				To:   Answer{Effect: to.Effect.String(), Message: strings.Join(after, ", ")}})
		}
	}
}
