// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A merger collects what the layers say about one proposal.
type merger struct {
	engine  *Engine
	rules   map[string]bool
	reasons []proposal.Reason
	by      []*layer // who gave each of reasons; nil is the floor
	asked   *layer   // whose answer is taken, or nil
	allowed map[int]bool
	limits  map[string]float64 // what the granting layer gives
	lowered map[string]float64 // what other layers lower it to
	lowers  []lowering         // what observed layers would lower it to
	env     map[string]bool
	network map[string]bool
	ignored map[string]bool // hosts that a layer would grant which may not
	kinds   map[string]bool // of programs that the command may start beside the root file system's
	notes   []proposal.Finding
	given   given // about a connection
	// replaced are the finds that are to be replaced; not nil at fumehood.output alone.
	replaced map[string]bool
	beyond   bool // a rule that looks beyond an exec's key may have spoken
	// would is what a layer that would grant, and is only observed, makes of the same.
	would *merger
}

func newMerger(e *Engine) *merger {
	m := emptyMerger(e)
	if e.candidate() != nil {
		m.would = emptyMerger(e)
	}
	return m
}

func emptyMerger(e *Engine) *merger {
	return &merger{engine: e, rules: map[string]bool{}, allowed: map[int]bool{}, limits: map[string]float64{}, lowered: map[string]float64{}, env: map[string]bool{}, network: map[string]bool{}, ignored: map[string]bool{}, kinds: map[string]bool{}}
}

// take reads one layer's answer about one command, or about the proposal (-1).
func (m *merger) take(l *layer, result map[string]any, command int, text string) error {
	if mine, err := m.share(l, result, command, text); err != nil || !mine {
		return err
	}
	m.asked = l
	defer func() { m.asked = nil }()
	for _, set := range slices.Sorted(maps.Keys(result)) {
		members, ok := result[set].([]any)
		if !ok {
			return m.malformed(l, set, "is not a set")
		}
		for _, member := range members {
			if err := m.member(l, set, member, command, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merger) malformed(l *layer, set, what string) error {
	return module.Stop(module.CodeUnknownKey, fmt.Sprintf("layer %q: a member of %s %s", l.name, set, what),
		"deny and ask take rule, message, suggestion and text; allow takes rule; limits takes rule and numbers; env takes rule and name; network takes rule and host; exec takes rule and kind; note takes rule and message; budget takes rule and bytes; intercept, private, raw, filter and redact take rule; in fumehood.output redact may take secret", nil)
}

func (m *merger) member(l *layer, set string, member any, command int, text string) error {
	object, ok := member.(map[string]any)
	if !ok {
		return m.malformed(l, set, "is not an object")
	}
	switch set {
	case "limits":
		return m.limit(l, object, command)
	case "budget":
		return m.budget(l, object)
	}
	fields, what := textFields(object, set)
	if what != "" {
		return m.malformed(l, set, what)
	}
	switch set {
	case "deny", "ask":
		m.reason(set, fields, command, text)
		m.reasons[len(m.reasons)-1].Observed = m.observes(l)
	case "allow":
		m.allow(l, fields["rule"], command)
	case "env":
		m.grant(l, m.env, fields["name"])
	case "network":
		m.open(l, fields["host"])
	case "intercept", "private", "raw", "filter", "redact":
		if m.replaced != nil {
			m.replace(l, fields)
			break
		}
		if fields["secret"] != "" {
			return m.malformed(l, set, "has the key \"secret\", which it has only in "+module.PointOutput)
		}
		m.flag(l, set, fields["rule"])
	case "exec":
		m.grant(l, m.kinds, fields["kind"])
	case "note":
		m.notes = append(m.notes, proposal.Finding{Rule: fields["rule"], Message: fields["message"]})
	}
	return nil
}

// textFields reads an object of strings and says what is wrong with it, if anything.
func textFields(object map[string]any, set string) (map[string]string, string) {
	want, _ := module.MemberKeys(set)
	fields := map[string]string{}
	for key, value := range object {
		if !slices.Contains(want.Must, key) && !slices.Contains(want.May, key) {
			return nil, fmt.Sprintf("has the unknown key %q", key)
		}
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Sprintf("has no string under %q", key)
		}
		fields[key] = text
		if key == "message" || key == "suggestion" || key == "text" {
			fields[key] = legible(text)
		}
	}
	for _, key := range want.Must {
		if fields[key] == "" {
			return nil, fmt.Sprintf("lacks the key %q", key)
		}
	}
	if !named.MatchString(fields["rule"]) {
		return nil, fmt.Sprintf("has a rule %.100q, which is no id: letters, digits, dots, - and _", fields["rule"])
	}
	return fields, ""
}

func (m *merger) reason(set string, f map[string]string, command int, text string) {
	effect := proposal.Deny
	if set == "ask" {
		effect = proposal.Ask
	}
	if f["text"] != "" {
		text = f["text"]
	}
	m.rules[f["rule"]] = true
	m.by = append(m.by, m.asked)
	m.reasons = append(m.reasons, proposal.Reason{Rule: f["rule"], Effect: effect, Message: f["message"],
		Suggestion: f["suggestion"], Command: command, Text: text})
}

func (m *merger) allow(l *layer, rule string, command int) {
	if !l.may(Allows) {
		m.engine.warn(fmt.Sprintf("policy.ignored-allow: layer %q may not allow; its rule %q counts for nothing", l.name, rule))
		return
	}
	m.rules[rule] = true
	m.allowed[command] = true
}

func (m *merger) grant(l *layer, to map[string]bool, name string) {
	if l.may(Allows) {
		to[name] = true
		return
	}
	m.engine.warn(fmt.Sprintf("policy.ignored-allow: layer %q may not grant %q", l.name, name))
}

// open grants an entry of network.
func (m *merger) open(l *layer, entry string) {
	if l.may(Opens) {
		m.network[entry] = true
		return
	}
	m.ignored[entry] = true
	m.engine.warn(fmt.Sprintf("policy.ignored-allow: layer %q may not grant the host %q: name it with --hosts or --organization, not --policy, if it may", l.name, entry))
}

// noRule denies a command that no rule of the granting layer allows.
func (m *merger) noRule(c commandInput, text string) {
	if m.denied(c.Index) {
		return // a rule has said something better
	}
	message := "no rule allows this command"
	if c.Program != "" {
		message = fmt.Sprintf("no rule allows %q with these arguments", c.Program)
	}
	if near := m.near(c.Program); near != "" {
		m.reason("deny", map[string]string{"rule": "default.no-rule", "message": message, "suggestion": near}, c.Index, text)
		return
	}
	m.reason("deny", map[string]string{"rule": "default.no-rule", "message": message,
		"suggestion": "use a tool that the policy names, for example go, python3, npm, cargo, make, git, grep, sed or cat"}, c.Index, text)
}

// near names allowed programs whose names are close to program's.
func (m *merger) near(program string) string {
	var programs []string
	for _, l := range m.engine.layers {
		if l.candidate && m.would != nil {
			continue
		}
		programs = append(programs, l.programs...)
	}
	if slices.Contains(programs, program) {
		return program + " is allowed with other arguments: see its rules in the policy"
	}
	var close []string
	for _, known := range programs {
		if len(program) > 2 && (strings.HasPrefix(known, program) || len(known) > 2 && strings.HasPrefix(program, known)) {
			close = append(close, known)
		}
	}
	if sort.Strings(close); len(close) > 0 {
		return "allowed and near: " + strings.Join(close[:min(5, len(close))], ", ")
	}
	return ""
}

// observes reports whether what l says is recorded and not heeded. A layer that may
// grant hosts is always heeded: its grants would else hold without its denials.
func (m *merger) observes(l *layer) bool { return m.engine.observe && !l.may(Opens) }

// denied reports whether a rule that is heeded has denied command.
func (m *merger) denied(command int) bool {
	return slices.ContainsFunc(m.reasons, func(r proposal.Reason) bool {
		return r.Command == command && r.Effect == proposal.Deny && !r.Observed
	})
}

// effect is the strongest of the reasons that are heeded.
func (m *merger) effect() proposal.Effect {
	effect := proposal.Allow
	for _, r := range m.reasons {
		if !r.Observed {
			effect = min(effect, r.Effect)
		}
	}
	return effect
}

// decision is the strongest effect. An ask carries the grant that an approval gives.
func (m *merger) decision(p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	m.floor(p, a)
	m.observeCandidate(func(would *merger) { would.floor(p, a) })
	d := proposal.Decision{Effect: m.effect()}
	if d.Effect != proposal.Deny {
		grant, err := m.granted(p)
		if err != nil {
			return proposal.Decision{}, err
		}
		d.Grant = &grant
	}
	m.observeGrant()
	m.recordLowerings()
	d.Rules, d.Reasons = slices.Sorted(maps.Keys(m.rules)), m.typed(p, a)
	return d, nil
}

// floor holds whatever the layers say: what could not be analysed, and what nothing
// granted, is denied.
func (m *merger) floor(p proposal.Proposal, a proposal.Analysis) {
	denied := m.effect() == proposal.Deny
	add := func(rule, message, suggestion string) {
		if !denied {
			m.reason("deny", map[string]string{"rule": rule, "message": message, "suggestion": suggestion}, whole, "")
		}
	}
	if len(a.Unknowns) > 0 {
		add("floor.unknown", "part of the text cannot be known before it runs", "write it plainly")
	}
	if len(a.Commands) == 0 {
		add("floor.no-command", "no command was found", "propose one command")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if !m.env[name] {
			add("env.name", fmt.Sprintf("no rule lets the variable %s in", name), "leave it out")
		}
	}
	m.networkFloor(p)
}

// networkFloor denies each host that no rule grants, whatever else is denied: who wrote
// the proposal needs to know it.
func (m *merger) networkFloor(p proposal.Proposal) {
	for _, host := range p.Network {
		if !m.network[host] {
			m.reason("deny", map[string]string{"rule": "network.none", "message": fmt.Sprintf("no policy lets a command reach %q", host),
				"suggestion": m.opener(host, p.Phase)}, whole, host)
		}
	}
}

// opener says what would have to be for host to be granted.
func (m *merger) opener(host, phase string) string {
	if m.ignored[host] {
		return "a folder given with --policy would grant it, and may not: name it with --hosts instead (in the action: network: policy)"
	}
	says := fmt.Sprintf("a policy folder named with --hosts (the action: policy, with network: policy) says so: network contains {\"rule\": \"org.hosts\", \"host\": %q} in package %s", host, module.PointProposal)
	if strings.HasPrefix(host, "registry:") && phase != proposal.PhaseSetup {
		return "fetch packages in a proposal of their own with phase: setup, where policies mostly grant registries, before those that run; or " + says
	}
	return "leave network out; or " + says
}
