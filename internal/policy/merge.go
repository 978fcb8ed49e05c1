// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A merger collects the layers' answers about one proposal.
type merger struct {
	engine  *Engine
	rules   map[string]bool
	reasons []proposal.Reason
	by      []*layer // the layer of each reason; nil is the floor
	// overrides are those that hold for the document that is being asked about.
	overrides []module.Override
	asked     *layer // the layer whose answer is being read, or nil
	trial     bool   // the members that are being read are of observed rules
	allowed   map[int]bool
	limits    map[string]float64 // of the granting layer
	lowered   map[string]float64 // by other layers
	lowers    []observedLimit    // by observed layers, without effect
	env       map[string]bool
	network   map[string]bool
	ignored   map[string]bool // hosts granted by a layer that must not grant hosts
	steady    map[int]bool    // commands that are called deterministic
	kinds     map[string]bool // of programs that the command may start besides those of the root file system
	notes     []proposal.Finding
	given     egressExtras // about a connection
	// replaced are the findings to redact; it is nil except at fumehood.output.
	replaced map[string]bool
	beyond   bool // a rule that depends on more than an exec's key may have held
	// would is the same decision by a granting layer that is only observed.
	would *merger

	suggests bool // a first command without a rule is tried with the configuration
}

func newMerger(e *Engine) *merger {
	m := emptyMerger(e)
	if e.candidateLayer() != nil {
		m.would = emptyMerger(e)
	}
	return m
}

func emptyMerger(e *Engine) *merger {
	return &merger{engine: e, rules: map[string]bool{}, allowed: map[int]bool{}, limits: map[string]float64{},
		lowered: map[string]float64{}, env: map[string]bool{}, network: map[string]bool{}, ignored: map[string]bool{},
		kinds: map[string]bool{}, steady: map[int]bool{}}
}

// A reply is what one layer says about one command, or about the proposal (whole).
type reply struct {
	sets    map[string]any
	command int
	text    string
	where   func(set string) string // names the rules of a set that held
}

// readReply reads one layer's answer.
func (m *merger) readReply(l *layer, a reply) {
	if !m.shareReply(l, a) {
		return
	}
	m.asked = l
	defer func() { m.asked, m.trial = nil, false }()
	for _, name := range slices.Sorted(maps.Keys(a.sets)) {
		members, ok := a.sets[name].([]any)
		var set string
		set, m.trial = module.WrittenSet(name)
		if !ok {
			m.denyMalformed(l, a, set, "is not a set")
		}
		for _, member := range members {
			if what := m.readMember(l, set, member, a.command, a.text); what != "" {
				m.denyMalformed(l, a, set, what)
			}
		}
	}
}

// denyMalformed denies what a rule answered about in a way that means nothing: only that, because
// a mistake in one rule must not stop what other rules decide.
func (m *merger) denyMalformed(l *layer, a reply, set, what string) {
	message := fmt.Sprintf("the policy's answer is not valid: a member of %s %s (%s)", set, what, a.where(set))
	m.addReason("deny", map[string]string{"rule": RuleMalformed, "message": sanitizeLine(message),
		"suggestion": "correct the rule: " + describeMember(set)}, a.command, a.text)
	m.markObserved(l)
	m.notes = append(m.notes, proposal.Finding{Rule: RuleMalformed, Message: sanitizeLine(message)})
}

// RuleMalformed is the id of a denial because a rule gave an answer that is not valid.
const RuleMalformed = "policy.malformed"

// describeMember says what a member of a set is.
func describeMember(set string) string {
	keys, known := module.MemberKeys(set)
	if !known {
		keys = module.Keys{Must: []string{"rule"}, May: module.LimitKeys}
	}
	text := "a member of " + set + " is an object with " + strings.Join(keys.Must, ", ")
	if len(keys.May) > 0 {
		text += ", and it may have " + strings.Join(keys.May, ", ")
	}
	return text
}

// describePlaces names the places of the rules of a set that hold for doc.
func (l *layer) describePlaces(ctx context.Context, doc Document, set string) string {
	var places []module.Place
	var err error
	l.usageMeter(ctx).Run(func() { places, err = l.heldPlaces(ctx, doc, set) })
	if err != nil || len(places) == 0 {
		return "policy " + l.label
	}
	var list []string
	for _, p := range places[:min(3, len(places))] {
		list = append(list, fmt.Sprintf("%s:%d", p.File, p.Row))
	}
	return strings.Join(list, " or ")
}

// readMember reads one member of a set. It returns what is wrong with it, or "".
func (m *merger) readMember(l *layer, set string, member any, command int, text string) string {
	object, ok := member.(map[string]any)
	if !ok {
		return "is not an object"
	}
	switch set {
	case "limits":
		return m.readLimit(l, object, command)
	case "budget":
		return m.readBudget(l, object)
	case module.SetOverride:
		return m.readOverride(l, object)
	}
	fields, what := textFields(object, set)
	if what != "" {
		return what
	}
	switch set {
	case "deny", "ask":
		m.addReason(set, fields, command, text)
		m.markObserved(l)
	case "allow":
		m.allowCommand(l, fields["rule"], command)
	case "env":
		m.addGrant(l, m.env, fields["name"])
	case "network":
		m.grantHost(l, fields["host"])
	case "intercept", "many_names", "private", "raw", "filter", "redact":
		if m.replaced != nil {
			m.readReplacement(l, fields)
			break
		}
		if fields["secret"] != "" {
			return "has the key \"secret\", which it has only in " + module.PointOutput
		}
		m.readFlag(l, set, fields["rule"])
	case "exec":
		m.addGrant(l, m.kinds, fields["kind"])
	case "cache":
		m.markCacheable(l, command)
	case "note":
		m.notes = append(m.notes, proposal.Finding{Rule: fields["rule"], Message: fields["message"]})
	}
	return ""
}

// textFields reads an object of strings. It returns what is wrong with it, or "".
func textFields(object map[string]any, set string) (map[string]string, string) {
	want, _ := module.MemberKeys(set)
	fields := map[string]string{}
	for key, value := range object {
		if !slices.Contains(want.Must, key) && !slices.Contains(want.May, key) {
			return nil, fmt.Sprintf("has the unknown key %q", key)
		}
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Sprintf("has no string for %q", key)
		}
		fields[key] = text
		if key == "message" || key == "suggestion" || key == "text" {
			fields[key] = sanitizeLine(text)
		}
	}
	for _, key := range want.Must {
		if fields[key] == "" {
			return nil, fmt.Sprintf("lacks the key %q", key)
		}
	}
	if !named.MatchString(fields["rule"]) {
		return nil, fmt.Sprintf("has an invalid rule id %.100q: use letters, digits, dots, - and _", fields["rule"])
	}
	return fields, ""
}

func (m *merger) addReason(set string, f map[string]string, command int, text string) {
	effect := proposal.Deny
	if set == "ask" {
		effect = proposal.Ask
	}
	if f["text"] != "" {
		text = f["text"]
	}
	m.rules[f["rule"]] = true
	m.by = append(m.by, m.asked)
	about := m.asked.labelOf(f["rule"])
	m.reasons = append(m.reasons, proposal.Reason{Rule: f["rule"], Effect: effect, Message: f["message"],
		Suggestion: f["suggestion"], Command: command, Text: text, Severity: about.severity, Category: about.category})
}

func (m *merger) allowCommand(l *layer, rule string, command int) {
	if !l.hasRole(Allows) {
		m.engine.addWarning(fmt.Sprintf("policy.ignored-allow: layer %q must not allow; its rule %q is ignored", l.name,
			rule))
		return
	}
	m.rules[rule] = true
	m.allowed[command] = true
}

func (m *merger) addGrant(l *layer, to map[string]bool, name string) {
	if l.hasRole(Allows) {
		to[name] = true
		return
	}
	m.engine.addWarning(fmt.Sprintf("policy.ignored-allow: layer %q must not grant %q", l.name, name))
}

// markCacheable says that the result of a command depends on nothing but its inputs.
func (m *merger) markCacheable(l *layer, command int) {
	if l.hasRole(Allows) {
		m.steady[command] = true
		return
	}
	m.engine.addWarning(fmt.Sprintf("policy.ignored-allow: layer %q must not grant the use of kept results", l.name))
}

// grantHost grants an entry of network.
func (m *merger) grantHost(l *layer, entry string) {
	if l.hasRole(Opens) {
		m.network[entry] = true
		return
	}
	m.ignored[entry] = true
	m.engine.addWarning(fmt.Sprintf("policy.ignored-allow: layer %q must not grant the host %q: to allow that, pass the layer with --hosts or --organization, not --policy", l.name, entry))
}

// noRule denies a command that no rule of the granting layer allows. The hint is added to the suggestion.
func (m *merger) noRule(c commandInput, text, hint string) {
	message := "no rule allows this command"
	if c.Program != "" {
		message = fmt.Sprintf("no rule allows %q with these arguments", c.Program)
	}
	instead := cmp.Or(m.suggestPrograms(c.Program),
		"use a tool that the policy names, for example go, python3, npm, cargo, make, git, grep, sed or cat") + hint
	if strings.HasPrefix(c.Program, "../") {
		message = fmt.Sprintf("where %q leads depends on whether the cd before it succeeds", c.Program)
		instead = "name the program by its full path: `/workspace/bin/app --version`"
	}
	m.addReason("deny", map[string]string{"rule": "default.no-rule", "message": message, "suggestion": instead},
		c.Index, text)
}

// versionEnd is what the name of a tool ends with if it has the version.
var versionEnd = pattern.New(`^[-.]?[0-9.]+$`)

// suggestPrograms lists allowed programs with names similar to program's.
func (m *merger) suggestPrograms(program string) string {
	var programs []string
	for _, l := range m.engine.layers {
		if l.candidate && m.would != nil {
			continue
		}
		programs = append(programs, l.programs...)
	}
	if slices.Contains(programs, program) {
		return program + " is allowed with other arguments: read its rules in the policy"
	}
	var close []string
	for _, known := range programs {
		if len(program) > 2 && (strings.HasPrefix(known, program) ||
			len(known) > 2 && strings.HasPrefix(program, known) && versionEnd.MatchString(program[len(known):])) {
			close = append(close, known)
		}
	}
	if sort.Strings(close); len(close) > 0 {
		return "use an allowed program with a similar name: " + strings.Join(close[:min(5, len(close))], ", ")
	}
	return ""
}

// isObserved reports whether l's answers are only recorded: those of observed rules, and all of a layer that
// is observed. A layer that may grant hosts is not observed as a whole: otherwise its grants would apply
// without its denials.
func (m *merger) isObserved(l *layer) bool { return m.trial || m.engine.observe && !l.hasRole(Opens) }

// markObserved marks the last reason, if it is only recorded.
func (m *merger) markObserved(l *layer) {
	if r := &m.reasons[len(m.reasons)-1]; m.isObserved(l) {
		r.Observed, r.Revision = true, l.revisionOf(r.Rule)
	}
}

// isDenied reports whether a rule has denied command, not counting observed ones.
func (m *merger) isDenied(command int) bool {
	return slices.ContainsFunc(m.reasons, func(r proposal.Reason) bool {
		return r.Command == command && r.Effect == proposal.Deny && !r.Observed
	})
}

// strictestEffect is the strictest effect of the reasons that count.
func (m *merger) strictestEffect() proposal.Effect {
	effect := proposal.Allow
	for _, r := range m.reasons {
		if !r.Observed {
			effect = min(effect, r.Effect)
		}
	}
	return effect
}

// buildDecision is the strictest effect. An ask has the grant that an approval gives.
func (m *merger) buildDecision(p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	m.applyFloorRules(p, a)
	m.observeCandidate(func(would *merger) { would.applyFloorRules(p, a) })
	d := proposal.Decision{Effect: m.strictestEffect()}
	if d.Effect != proposal.Deny {
		grant, err := m.buildGrant(p, a)
		if err != nil {
			return proposal.Decision{}, err
		}
		d.Grant = &grant
	}
	m.observeGrant()
	m.recordLowerings()
	d.Rules, d.Reasons = slices.Sorted(maps.Keys(m.rules)), m.completeReasons(p, a)
	return d, nil
}

// applyFloorRules applies whatever the layers say: text that could not be analyzed, and requests
// that no rule granted, are denied.
func (m *merger) applyFloorRules(p proposal.Proposal, a proposal.Analysis) {
	denied := m.strictestEffect() == proposal.Deny
	add := func(rule, message, suggestion string) {
		if !denied {
			m.addReason("deny", map[string]string{"rule": rule, "message": message, "suggestion": suggestion}, whole,
				"")
		}
	}
	if len(a.Unknowns) > 0 {
		add("floor.unknown", "part of the text is unknown before it runs", "write it literally")
	}
	if len(a.Commands) == 0 {
		add("floor.no-command", "no command was found", "propose one command")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if !m.env[name] {
			add("env.name", fmt.Sprintf("no rule allows the variable %s", name), "remove it")
		}
	}
	m.networkFloor(p)
	if !denied {
		m.limitFloors(p)
	}
}

// networkFloor denies each host that no rule grants, whatever else is denied: the author
// of the proposal needs to know all of them.
func (m *merger) networkFloor(p proposal.Proposal) {
	for _, host := range p.Network {
		if !m.network[host] {
			m.addReason("deny", map[string]string{"rule": "network.none",
				"message":    fmt.Sprintf("no policy grants the host %q", host),
				"suggestion": m.hostGrantHint(host, p.Phase)}, whole, host)
		}
	}
}

// hostGrantHint returns how the host could be granted.
func (m *merger) hostGrantHint(host, phase string) string {
	if m.ignored[host] {
		return "a directory given with --policy grants it, but must not: use --hosts instead (in the action: network: policy)"
	}
	says := fmt.Sprintf("grant it with a .rego file of two lines, in a policy directory given with --hosts (in the action: policy, with network: policy): package %s, and below it network contains {\"rule\": \"org.hosts\", \"host\": %q}", module.PointProposal, host)
	if strings.HasPrefix(host, "registry:") && phase != proposal.PhaseSetup {
		return "fetch packages first, in a separate proposal with phase: setup, for which policies usually grant registries; or " + says
	}
	return "remove network; or " + says
}
