// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/kit/spelling"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// labelHelp says what to write for each key.
var labelHelp = map[string]string{
	module.KeySeverity: "write " + strings.Join(valid.Severities, ", "),
	module.KeyCategory: "write one word of lower-case letters, digits and hyphens, at most 32",
}

// customKeys are the keys of METADATA's custom with a meaning.
var customKeys = []string{"rule", "match", "not_match", "grants", "not_grants", "reaches", "not_reaches", "retry",
	module.KeySeverity, module.KeyCategory, module.KeyTextOnly, module.KeyExpires, "owner", "reason", "ticket",
	module.KeyMode, module.KeyUntil, module.KeyDigest}

// findInvalidLabels finds severities and categories that nothing would show, and misspelt keys.
func (x *linter) findInvalidLabels(m *ast.Module) {
	for _, a := range m.Annotations {
		for _, key := range slices.Sorted(maps.Keys(a.Custom)) {
			switch help := labelHelp[key]; {
			case help != "" && module.Label(a, key) == "":
				x.addProblem(a.Location, Wrong, lintMetadata,
					fmt.Sprintf("invalid custom.%s %q: nothing shows it", key, fmt.Sprint(a.Custom[key])), help)
			case help != "" && customRule(a) == "":
				x.addProblem(a.Location, Wrong, lintMetadata,
					fmt.Sprintf("custom.%s needs custom.rule: nothing shows it", key), "add the rule's id")
			case help == "" && !slices.Contains(customKeys, key):
				if meant := spelling.NearestName(key, customKeys); meant != "" {
					x.addProblem(a.Location, Doubtful, lintMetadata,
						fmt.Sprintf("unknown key %q in METADATA's custom", key), "did you mean "+meant+"?")
				}
			}
		}
	}
	x.findMisplaced(m)
}

// findMisplaced finds METADATA of a rule that is above the package, where OPA reads it as the package's.
func (x *linter) findMisplaced(m *ast.Module) {
	for _, a := range m.Annotations {
		id := customRule(a)
		if a.Scope != "package" || id == "" || strings.HasSuffix(id, ".") {
			continue
		}
		for _, r := range m.Rules {
			if written, constant := writtenIDOf(r); constant && written == id && ruleAnnotation(r) == nil {
				x.addProblem(a.Location, Wrong, lintMetadata,
					fmt.Sprintf("this METADATA is above package, so it is not that of the rule %q", id),
					"move it below package, directly above the rule")
				break
			}
		}
	}
}
