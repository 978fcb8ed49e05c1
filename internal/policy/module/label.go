// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/valid"
)

// The keys of METADATA's custom that classify the denials and questions of a rule.
const (
	KeySeverity = "severity"  // one of valid.Severities
	KeyTextOnly = "text_only" // true if the rule is about texts, and not about what other programs start
	KeyCategory = "category"  // a valid.Category
)

// programNames are the fields with the name of a command's program.
var programNames = []ast.Ref{ast.MustParseRef("input.command.program"), ast.MustParseRef("input.command.tool")}

// NamesProgram reports whether r itself reads the name of a command's program.
func NamesProgram(r *ast.Rule) (names bool) {
	ast.WalkRefs(r, func(ref ast.Ref) bool {
		names = names || slices.ContainsFunc(programNames, ref.HasPrefix)
		return names
	})
	return names
}

// Label is the value of KeySeverity or KeyCategory in a, or "" if it is absent or not valid.
func Label(a *ast.Annotations, key string) string {
	text, _ := a.Custom[key].(string)
	if key == KeySeverity && !slices.Contains(valid.Severities, text) || key == KeyCategory && !valid.IsCategory(text) {
		return ""
	}
	return text
}
