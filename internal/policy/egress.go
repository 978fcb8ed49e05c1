// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// egressInput is the input document of fumehood.egress. Every field is always present, and
// empty where the kind of Egress has none.
type egressInput struct {
	Command    string                  `json:"command"`                  // id of the proposal
	Phase      string                  `json:"phase" enum:"phase"`       // of the plan
	Kind       string                  `json:"kind" enum:"step"`         // of the step; hello is of TLS
	Name       string                  `json:"name" form:"host"`         // that was looked up, in lower case; "" for a raw address
	Type       string                  `json:"type"`                     // of the lookup
	Address    string                  `json:"address" form:"address"`   // IP address as Go writes it; an embedded IPv4 one as IPv4; "" if only the upstream proxy knows it
	Port       int                     `json:"port"`                     // 0 for a lookup
	Protocol   string                  `json:"protocol" enum:"protocol"` // of the step
	SNI        string                  `json:"sni" form:"host"`          // the name in the TLS hello
	Method     string                  `json:"method" form:"method"`     // of a request, in capitals
	Path       string                  `json:"path"`                     // of a request, without the query
	Escaped    bool                    `json:"escaped"`                  // a slash of the path was sent as %2F
	Query      int                     `json:"query"`                    // length of the query in bytes
	Size       int64                   `json:"size"`                     // of the body; -1 when not known
	Secrets    []proposal.EgressSecret `json:"secrets"`                  // possible secrets in a request
	Grants     []string                `json:"grants"`                   // the hosts that the command was granted, as written
	Naming     []namingInput           `json:"naming"`                   // the Grants that name the host, whatever the port
	Named      bool                    `json:"named"`                    // Naming is not empty
	Fits       bool                    `json:"fits"`                     // a Naming fits the port, too
	Exact      bool                    `json:"exact"`                    // a Naming that fits is not a suffix
	Registries []string                `json:"registries"`               // the Grants of registries that have this host
	Registry   bool                    `json:"registry"`                 // Registries is not empty
}

// Egress decides one step of a connection. Only Allow lets the step pass: no person can be
// asked, and a step that no rule of the granting layer allows is denied. An error is a
// *proposal.StopError, as for Decide, and then nothing passes either.
//
// Whatever the layers say, these are denied: anything that is not a step of a connection
// or comes without a grant of hosts; every datagram; a lookup for anything except an
// address; a hello for another name than the one looked up; and a request that contains
// what looks like a secret, unless a layer that may grant redacts it.
func (e *Engine) Egress(ctx context.Context, x proposal.Egress) (proposal.EgressDecision, error) {
	return inTime(ctx, e, func(ctx context.Context) (proposal.EgressDecision, error) {
		m := newMerger(e)
		in := egressInputOf(x)
		if err := e.askLayers(ctx, m, module.PointEgress, e.newDocument(in), whole,
			describeTarget(x)); err != nil {
			return proposal.EgressDecision{}, err
		}
		d := m.egressDecision(x)
		if d.Effect == proposal.Allow && !m.given.many {
			d.Below = lookupOnlySuffix(in)
		}
		return d, nil
	})
}

// IsGrantedByName reports whether a grant of x names its host itself, or is a registry with that host: not
// only a suffix of its name.
func IsGrantedByName(x proposal.Egress) bool {
	in := egressInputOf(x)
	return in.Exact || in.Registry
}

func egressInputOf(x proposal.Egress) egressInput {
	in := egressInput{
		Command: x.Command, Phase: x.Phase, Kind: x.Kind, Name: x.Name, Type: x.Type, Address: x.Address, Port: x.Port,
		Protocol: x.Protocol,
		SNI:      x.SNI, Method: x.Method, Path: x.Path, Escaped: x.Escaped, Query: x.Query, Size: x.Size,
		Secrets: x.Secrets,
		Grants:  x.Grants, Registries: x.Registries, Registry: len(x.Registries) > 0,
	}
	if a, err := netip.ParseAddr(x.Address); err == nil {
		in.Address = a.Unmap().WithZone("").String()
	}
	in.Naming = findNamings(in)
	for _, n := range in.Naming {
		in.Named, in.Fits, in.Exact = true, in.Fits || n.Fits, in.Exact || n.Fits && n.Kind != kindSuffix
	}
	return in
}

// lookupOnlySuffix is the widest suffix whose grant alone allows a lookup, "" if something else does.
func lookupOnlySuffix(in egressInput) string {
	if in.Kind != points.EgressLookup || in.Exact || in.Registry {
		return ""
	}
	widest := ""
	for _, n := range in.Naming {
		if suffix := strings.TrimPrefix(in.Name, n.Below); n.Kind == kindSuffix &&
			(widest == "" || len(suffix) < len(widest)) {
			widest = suffix
		}
	}
	return widest
}

// describeTarget names x in a reason: "example.com:443", "lookup of example.com".
func describeTarget(x proposal.Egress) string {
	host := x.Name
	if host == "" {
		host = x.Address
	}
	if x.Kind == points.EgressLookup {
		return host
	}
	return host + ":" + strconv.Itoa(x.Port)
}

// egressExtras is what layers say about a connection besides its effect.
type egressExtras struct {
	intercept, many, private, raw, filter, redact bool
	most                                          proposal.Bytes
}

// readFlag reads one member of a set that turns something on. A flag that makes the answer
// stricter counts from every layer that is not only observed; a flag that gives something
// counts only from layers that may grant hosts.
func (m *merger) readFlag(l *layer, set, rule string) {
	if set == "many_names" || set == "private" || set == "raw" || set == "redact" {
		if !l.hasRole(Opens) {
			m.engine.addWarning(fmt.Sprintf("policy.ignored-allow: layer %q must not set %s; its rule %q is ignored",
				l.name, set, rule))
			return
		}
	}
	if m.isObserved(l) {
		return
	}
	m.rules[rule] = true
	switch set {
	case "intercept":
		m.given.intercept = true
	case "many_names":
		m.given.many = true
	case "private":
		m.given.private = true
	case "raw":
		m.given.raw = true
	case "filter":
		m.given.filter = true
	case "redact":
		m.given.redact = true
	}
}

// readBudget reads one member of budget. The smallest of several counts. It returns what is wrong
// with it, or "".
func (m *merger) readBudget(l *layer, object map[string]any) string {
	rule, _ := object["rule"].(string)
	number, _ := object["bytes"].(json.Number)
	bytes, err := number.Int64()
	if rule == "" || err != nil || bytes <= 0 || len(object) != 2 {
		return "needs rule and a positive whole number of bytes"
	}
	if !m.isObserved(l) {
		m.rules[rule] = true
		if m.given.most == 0 || proposal.Bytes(bytes) < m.given.most {
			m.given.most = proposal.Bytes(bytes)
		}
	}
	return ""
}

func (m *merger) egressDecision(x proposal.Egress) proposal.EgressDecision {
	m.egressFloor(x)
	m.observeCandidate(func(would *merger) { would.egressFloor(x) })
	d := proposal.EgressDecision{Effect: m.strictestEffect(), Rules: slices.Sorted(maps.Keys(m.rules)),
		Reason: mostImportantReason(m.reasons)}
	if d.Effect != proposal.Allow {
		d.Effect, d.Firm = proposal.Deny, m.nonGrantingReason()
		return d
	}
	d.Observed = d.Reason != nil
	d.Intercept, d.Private, d.Filter, d.Most = m.given.intercept, m.given.private, m.given.filter, m.given.most
	d.Raw = m.given.raw && !m.given.intercept
	if x.Kind == points.EgressRequest { // to a registry, requests only read
		d.Raw = m.given.raw && len(x.Registries) == 0
	}
	d.Redact = m.given.redact && len(x.Secrets) > 0
	return d
}

// nonGrantingReason returns the reason of a layer that does not grant, or nil. What the granting layer
// denies, or no rule grants, is the usual answer about an unknown host.
func (m *merger) nonGrantingReason() *proposal.Reason {
	for i, l := range m.by {
		if r := m.reasons[i]; l != nil && !l.hasRole(Grants) && r.Effect == proposal.Deny && !r.Observed {
			return &r
		}
	}
	return nil
}

// egressFloor applies whatever the layers say.
func (m *merger) egressFloor(x proposal.Egress) {
	add := func(rule, message, suggestion string) {
		m.addReason("deny", map[string]string{"rule": rule, "message": message, "suggestion": suggestion}, whole,
			describeTarget(x))
	}
	if rule, message, suggestion := alwaysDenied(x); rule != "" {
		add(rule, message, suggestion)
	}
	if len(x.Secrets) > 0 && !m.given.redact {
		add("egress.secret", fmt.Sprintf("what looks like a secret (%s) is in the %s of the request", x.Secrets[0].Rule,
			x.Secrets[0].Where), "remove it: secrets must not leave the sandbox")
	}
	if !m.allowed[whole] && !m.isDenied(whole) {
		add("egress.no-rule", "no rule of the granting policy allows it",
			"request the host in the proposal's network, if the policy grants it")
	}
}
