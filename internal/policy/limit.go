// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// UsualLimits are what the shipped policy grants a command that requests no limits. They only
// predict a decision.
var UsualLimits = proposal.Limits{Wall: proposal.Duration(2 * time.Hour), CPUs: 4, Memory: 4 * proposal.GiB, Pids: 1024,
	Disk: 8 * proposal.GiB, Files: 4096, Output: 64 * proposal.MiB}

// mostOfLimit is more than any machine has. As milliseconds it still is a time.Duration.
const mostOfLimit = 1 << 43

// An observedLimit is a limit that an observed layer names.
type observedLimit struct {
	layer   *layer
	rule    string
	command int
	key     string
	to      float64
}

// readLimit reads one member of limits. The granting layer sets limits, the others lower them.
// The smallest number counts, whatever the order of the layers. A member counts whole or not at
// all: it returns what is wrong with it, or "".
func (m *merger) readLimit(l *layer, object map[string]any, command int) string {
	numbers, what := limitNumbers(object)
	if what != "" {
		return what
	}
	rule, _ := object["rule"].(string)
	for key, f := range numbers {
		switch {
		case m.isObserved(l):
			m.lowers = append(m.lowers, observedLimit{l, rule, command, key, f})
		case l.hasRole(Grants):
			lowerLimit(m.limits, key, f)
		default:
			lowerLimit(m.lowered, key, f)
		}
	}
	return ""
}

// limitNumbers reads the limits of a member. It returns what is wrong with it, or "".
func limitNumbers(object map[string]any) (map[string]float64, string) {
	numbers := map[string]float64{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if _, text := object[key].(string); text && key == "rule" {
			continue
		}
		if !slices.Contains(module.LimitKeys, key) {
			return nil, fmt.Sprintf("has the unknown key %q", key)
		}
		number, _ := object[key].(json.Number)
		f, err := number.Float64()
		switch {
		case err != nil || f <= 0:
			return nil, fmt.Sprintf("has no positive number for %q", key)
		case key != "cpus" && f < 1:
			return nil, fmt.Sprintf("has less than 1 for %q", key)
		}
		numbers[key] = min(f, mostOfLimit)
	}
	return numbers, ""
}

func lowerLimit(limits map[string]float64, key string, to float64) {
	if old, ok := limits[key]; ok {
		to = min(to, old)
	}
	limits[key] = to
}

// recordLowerings records what the observed layers would lower.
func (m *merger) recordLowerings() {
	slices.SortStableFunc(m.lowers, func(a, b observedLimit) int {
		return cmp.Or(cmp.Compare(a.command, b.command), strings.Compare(a.rule, b.rule), strings.Compare(a.key, b.key))
	})
	for _, o := range m.lowers {
		if given, ok := m.limits[o.key]; !ok || o.to >= given {
			continue
		}
		rule := cmp.Or(o.rule, "limits")
		m.rules[rule] = true
		m.by = append(m.by, o.layer)
		m.reasons = append(m.reasons, proposal.Reason{
			Rule: rule, Effect: proposal.Allow, Observed: true, Command: o.command,
			Revision:   o.layer.revisionOf(rule),
			Message:    fmt.Sprintf("layer %q would lower %s to %v", o.layer.name, o.key, o.to),
			Suggestion: fmt.Sprintf("request %s of at most %v", o.key, o.to),
		})
	}
}

// limitFloors denies limits with which no command could start, unless the proposal requests them itself.
func (m *merger) limitFloors(p proposal.Proposal) {
	requested := requestedLimits(p)
	asked := map[string]int64{"wall_ms": requested.WallMS, "memory_bytes": requested.MemoryBytes,
		"pids": requested.Pids}
	for _, key := range slices.Sorted(maps.Keys(module.LimitFloors)) {
		floor, to := float64(module.LimitFloors[key]), m.limits[key]
		if low, ok := m.lowered[key]; ok && (to == 0 || low < to) {
			to = low
		}
		if to == 0 || to >= floor || asked[key] > 0 && float64(asked[key]) <= to {
			continue
		}
		m.addReason("deny", map[string]string{"rule": "floor.limits",
			"message":    fmt.Sprintf("policy limits %s to %d, and no command runs with less than %d", key, int64(to), int64(floor)),
			"suggestion": fmt.Sprintf("correct the rule of limits: it must give at least %d", int64(floor))}, whole, "")
	}
}

// buildGrant is the grant of an allow. Without all limits from the granting layer there is no
// decision.
func (m *merger) buildGrant(p proposal.Proposal, a proposal.Analysis) (proposal.Grant, error) {
	limits := map[string]float64{}
	for _, key := range module.LimitKeys {
		if m.limits[key] <= 0 {
			return proposal.Grant{}, module.Stop(module.CodeNoDecision, "the granting policy grants no limit "+key,
				"write limits contains {…} in package "+module.PointProposal+" with "+
					strings.Join(module.LimitKeys, ", "), nil)
		}
		limits[key] = m.limits[key]
		if low, ok := m.lowered[key]; ok {
			lowerLimit(limits, key, low)
		}
	}
	g := proposal.Grant{Env: map[string]string{}, Network: append([]string{}, p.Network...), Phase: proposal.PhaseRun,
		Fresh: p.Fresh, Exec: m.execKinds(p), Cache: p.Cache && m.isCacheable(p, a)}
	if p.Phase == proposal.PhaseSetup {
		g.Phase = proposal.PhaseSetup
	}
	for name, value := range p.Env {
		g.Env[name] = value
	}
	g.Limits = proposal.Limits{
		Wall: proposal.Duration(time.Duration(limits["wall_ms"]) * time.Millisecond), CPUs: limits["cpus"],
		Memory: proposal.Bytes(limits["memory_bytes"]), Pids: int(limits["pids"]),
		Disk:  proposal.Bytes(limits["disk_bytes"]),
		Files: int(limits["files"]), Output: proposal.Bytes(limits["output_bytes"]),
	}
	return g, nil
}

// isCacheable reports whether p is one command that policy calls deterministic, with a text that
// consists of its words. Around it, a case of the shell's could depend on the time.
func (m *merger) isCacheable(p proposal.Proposal, a proposal.Analysis) bool {
	if len(a.Commands) != 1 || !m.steady[a.Commands[0].Index] || len(p.Network) > 0 || p.Phase == proposal.PhaseSetup {
		return false
	}
	words := strings.Join(a.Commands[0].Argv(), " ")
	return p.Form() == "argv" || p.Form() == "run" && strings.TrimSpace(a.Canonical) == words
}

// kindNetwork is the kind that follows from a grant of hosts.
const kindNetwork = "network"

// execKinds are the kinds of programs that the command may start.
func (m *merger) execKinds(p proposal.Proposal) []string {
	kinds := slices.Sorted(maps.Keys(m.kinds))
	if len(p.Network) > 0 && !slices.Contains(kinds, kindNetwork) {
		kinds = append(kinds, kindNetwork)
	}
	return kinds
}
