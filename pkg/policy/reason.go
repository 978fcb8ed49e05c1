// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/policy/lint"
	"github.com/fumehood/fumehood/pkg/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// LayerFloor is the layer of a Reason that applies whatever the policies say.
const LayerFloor = "floor"

// roleNames are the names of layers by role, as in flags.
var roleNames = map[Role]string{Restricts: "policy", Opens: "hosts", Allows: "organisation", Grants: "granting"}

// labelled gives the layers names for reasons. These are not their paths, which differ
// between jobs that decide the same and may be private.
func labelled(layers []*layer) {
	seen := map[string]int{}
	for _, l := range layers {
		l.label = roleNames[l.role]
		if l.name == DefaultLayer && l.may(Grants) {
			l.label = DefaultLayer
		}
		if seen[l.label]++; seen[l.label] > 1 {
			l.label = fmt.Sprintf("%s#%d", l.label, seen[l.label])
		}
	}
}

// typed completes the reasons for the author of p.
func (m *merger) typed(p proposal.Proposal, a proposal.Analysis) []proposal.Reason {
	for i := range m.reasons {
		r := &m.reasons[i]
		r.Layer = LayerFloor
		if l := m.by[i]; l != nil {
			r.Layer = l.label
		}
		if !r.Observed {
			r.Retry = retry(m.by[i], r.Rule, r.Effect)
		}
		if s, ok := spanOf(a, *r); ok {
			r.Span = ownSpan(p, a, s)
		}
		if p.Earlier != nil && a.Canonical != "" && r.Span != nil { // else only the new code was read
			placeInCell(p, r)
		}
	}
	return m.reasons
}

// retry is the rule's retry in l's METADATA, or else follows from the effect.
func retry(l *layer, rule string, effect proposal.Effect) proposal.Retry {
	if rule == ruleMalformed {
		return proposal.RetryNever
	}
	if l != nil {
		for end := len(rule); end > 0; end = strings.LastIndexByte(rule[:end-1], '.') + 1 {
			if r, ok := l.retries[rule[:end]]; ok { // "a.b.c", then "a.b." and "a."
				return r
			}
		}
	}
	if effect == proposal.Ask {
		return proposal.RetryApproval
	}
	return proposal.RetryVary
}

// saysMore reports whether a file's METADATA may have a retry or an expiry: reading METADATA
// adds half of the cost of parsing.
func saysMore(content []byte) bool {
	return bytes.Contains(content, []byte("retry:")) || bytes.Contains(bytes.ToLower(content), []byte("expir"))
}

// strictness orders the values: if two rules with one id disagree, the first of these counts.
var strictness = []proposal.Retry{proposal.RetryNever, proposal.RetryApproval, proposal.RetryVary, proposal.RetryTransient}

// readRetries reads custom.retry beside custom.rule.
func (l *layer) readRetries(modules map[string]*ast.Module) error {
	l.retries = map[string]proposal.Retry{}
	for _, m := range modules {
		for _, a := range m.Annotations {
			said, ok := a.Custom["retry"]
			if !ok {
				continue
			}
			rule, _ := a.Custom["rule"].(string)
			word, _ := said.(string)
			place := slices.Index(strictness, proposal.Retry(word))
			switch {
			case rule == "":
				return lint.Refuse(l.name, a.Location, module.CodeUnknownKey, "custom.retry needs custom.rule", "add the rule's id")
			case place < 0:
				return lint.Refuse(l.name, a.Location, module.CodeUnknownKey, fmt.Sprintf("invalid custom.retry %q", fmt.Sprint(said)), "write never, approval, vary or transient")
			}
			if old, there := l.retries[rule]; !there || place < slices.Index(strictness, old) {
				l.retries[rule] = proposal.Retry(word)
			}
		}
	}
	return nil
}
