// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A label is what METADATA says about the reasons of a rule.
type label struct {
	retry              proposal.Retry
	severity, category string
	textOnly           bool // its rule is not about starts
}

// labelOf is the label of rule in l's METADATA: of its own id, and for what that does not
// say of the longest prefix, "a.b." before "a.". A nil layer has no labels.
func (l *layer) labelOf(rule string) label {
	var all label
	if l == nil || rule == RuleMalformed {
		return all
	}
	for end := len(rule); end > 0; end = strings.LastIndexByte(rule[:end-1], '.') + 1 {
		one := l.labels[rule[:end]]
		all = label{cmp.Or(all.retry, one.retry), cmp.Or(all.severity, one.severity),
			cmp.Or(all.category, one.category), all.textOnly || one.textOnly}
	}
	return all
}

// labelKeys are the texts without which a file's METADATA has no label and no expiry: reading
// METADATA adds half of the cost of parsing.
var labelKeys = [][]byte{[]byte("retry:"), []byte("severity:"), []byte("category:"), []byte("text_only:"),
	[]byte("mode"), []byte("until"), []byte("floor:"), []byte(module.SetOverride)}

// saysMore reports whether a file's METADATA may have a label or an expiry.
func saysMore(content []byte) bool {
	return slices.ContainsFunc(labelKeys, func(key []byte) bool { return bytes.Contains(content, key) }) ||
		bytes.Contains(bytes.ToLower(content), []byte("expir"))
}

// strictness orders the values: if two rules with one id disagree, the first of these counts.
var strictness = []proposal.Retry{proposal.RetryNever, proposal.RetryApproval, proposal.RetryVary,
	proposal.RetryTransient}

// readLabels reads the labels beside custom.rule.
func (l *layer) readLabels(modules map[string]*ast.Module) error {
	l.labels = map[string]label{}
	for _, m := range modules {
		for _, a := range m.Annotations {
			rule, _ := a.Custom["rule"].(string)
			one := label{severity: module.Label(a, module.KeySeverity), category: module.Label(a, module.KeyCategory),
				textOnly: a.Custom[module.KeyTextOnly] == true}
			l.textOnly = l.textOnly || one.textOnly && a.Scope == "package"
			if said, ok := a.Custom["retry"]; ok {
				word, _ := said.(string)
				one.retry = proposal.Retry(word)
				switch {
				case rule == "":
					return lint.Refuse(l.name, a.Location, module.CodeUnknownKey, "custom.retry needs custom.rule",
						"add the rule's id")
				case !slices.Contains(strictness, one.retry):
					return lint.Refuse(l.name, a.Location, module.CodeUnknownKey,
						fmt.Sprintf("invalid custom.retry %q", fmt.Sprint(said)),
						"write never, approval, vary or transient")
				}
			}
			if rule != "" && one != (label{}) {
				l.labels[rule] = l.labels[rule].combineWith(one)
			}
		}
	}
	return nil
}

// combineWith returns the label of two rules with one id: the strictest retry, the worst severity, and the
// first category in alphabetical order.
func (a label) combineWith(b label) label {
	return label{firstOf(strictness, a.retry, b.retry), firstOf(valid.Severities, a.severity, b.severity),
		firstOf(nil, a.category, b.category), a.textOnly || b.textOnly}
}

// firstOf is the one of a and b that is first in order, or else in the alphabet; "" is last.
func firstOf[T ~string](order []T, a, b T) T {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	if slices.Index(order, a) > slices.Index(order, b) || len(order) == 0 && a > b {
		return b
	}
	return a
}
