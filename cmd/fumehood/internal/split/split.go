// SPDX-License-Identifier: Apache-2.0

// Package split divides a plan among the jobs of a GitHub matrix.
package split

import (
	"cmp"
	"slices"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxParts is the maximum number of parts: GitHub starts at most 256 jobs of a matrix.
const MaxParts = 256

// SplitPlan divides p among at most n parts that take about the same time, in which each proposal
// is once. Proposals of set-up are in every part. Proposals connected by needs stay together,
// and keep their order. took returns how long a proposal took before, if that is known; what
// is not known, or not positive, counts as the median of what is known. nil knows nothing.
//
// The longest comes first, onto the part with the least to do: R. L. Graham, Bounds on
// Multiprocessing Timing Anomalies, 1969, which shows that the longest part is at most 4/3 of
// the optimum. The same arguments give the same parts. Parts without a proposal are left out.
//
// A plan that has no proposals, or an Invalid one, is one part, unchanged, so that the run
// shows what is wrong. So is any plan if n is less than 2; n greater than MaxParts counts as
// that.
func SplitPlan(p proposal.Plan, n int, took func(id string) (time.Duration, bool)) []proposal.Plan {
	if n < 2 || len(p.Refused()) > 0 {
		return []proposal.Plan{p}
	}
	groups := groupByNeeds(p.Proposals)
	if len(groups) < 2 {
		return []proposal.Plan{p}
	}
	place := assignParts(groupWeights(p.Proposals, groups, took), min(n, MaxParts))
	var parts []proposal.Plan
	for k := range min(n, MaxParts, len(groups)) {
		members := map[int]bool{}
		for g, part := range place {
			for _, i := range groups[g] {
				members[i] = members[i] || part == k
			}
		}
		parts = append(parts, partOf(p, members))
	}
	return parts
}

// partOf returns p with the proposals of set-up and those of members, which are indexes.
func partOf(p proposal.Plan, members map[int]bool) proposal.Plan {
	part := proposal.Plan{Schema: p.Schema, Proposer: p.Proposer}
	for i, one := range p.Proposals {
		if one.Phase == proposal.PhaseSetup || members[i] {
			part.Proposals = append(part.Proposals, one)
		}
	}
	return part
}

// groupByNeeds returns the indexes of the proposals that are not of set-up, grouped by needs. Groups
// are in the order of their first proposal. A need of set-up connects nothing: it is everywhere.
func groupByNeeds(list []proposal.Proposal) [][]int {
	group, at := make([]int, len(list)), map[string]int{}
	for i, p := range list {
		if group[i] = i; p.Phase == proposal.PhaseSetup {
			continue
		}
		at[p.ID] = i
		for _, need := range p.Needs {
			if j, ok := at[need]; ok {
				joinGroups(group, group[i], group[j])
			}
		}
	}
	return collectGroups(list, group)
}

// joinGroups makes two groups one, which has the smaller number.
func joinGroups(group []int, a, b int) {
	for i, g := range group {
		if g == a || g == b {
			group[i] = min(a, b)
		}
	}
}

func collectGroups(list []proposal.Proposal, group []int) (groups [][]int) {
	index := map[int]int{}
	for i, p := range list {
		if p.Phase == proposal.PhaseSetup {
			continue
		}
		if _, ok := index[group[i]]; !ok {
			index[group[i]] = len(groups)
			groups = append(groups, nil)
		}
		g := index[group[i]]
		groups[g] = append(groups[g], i)
	}
	return groups
}

// groupWeights returns how long each group takes.
func groupWeights(list []proposal.Proposal, groups [][]int, took func(string) (time.Duration, bool)) []time.Duration {
	each, known := make([]time.Duration, len(list)), []time.Duration{}
	for _, i := range slices.Concat(groups...) {
		if took == nil {
			continue
		}
		if d, ok := took(list[i].ID); ok && d > 0 {
			each[i] = min(d, MaxDuration)
			known = append(known, each[i])
		}
	}
	otherwise := lowerMedian(known)
	sums := make([]time.Duration, len(groups))
	for g, members := range groups {
		for _, i := range members {
			if each[i] == 0 {
				each[i] = otherwise
			}
			sums[g] += each[i]
		}
	}
	return sums
}

// lowerMedian returns the lower median, or any positive duration if there is none.
func lowerMedian(known []time.Duration) time.Duration {
	if len(known) == 0 {
		return time.Second
	}
	slices.Sort(known)
	return known[(len(known)-1)/2]
}

// assignParts returns the part of each weight, from 0.
func assignParts(weight []time.Duration, n int) []int {
	order := make([]int, len(weight))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
	place, load := make([]int, len(weight)), make([]time.Duration, n)
	for _, g := range order {
		least := slices.Index(load, slices.Min(load))
		place[g] = least
		load[least] += weight[g]
	}
	return place
}
