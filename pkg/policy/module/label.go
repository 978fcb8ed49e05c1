// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// The keys of METADATA's custom that classify the denials and questions of a rule.
const (
	KeySeverity = "severity" // one of proposal.Severities
	KeyCategory = "category" // a proposal.ValidCategory
)

// Label is the value of KeySeverity or KeyCategory in a, or "" if it is absent or not valid.
func Label(a *ast.Annotations, key string) string {
	text, _ := a.Custom[key].(string)
	if key == KeySeverity && !slices.Contains(proposal.Severities, text) || key == KeyCategory && !proposal.ValidCategory(text) {
		return ""
	}
	return text
}
