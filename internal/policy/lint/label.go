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

// findInvalidLabels finds severities and categories that nothing would show.
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
			case help == "":
				if meant := spelling.NearestName(key, slices.Collect(maps.Keys(labelHelp))); meant != "" {
					x.addProblem(a.Location, Doubtful, lintMetadata,
						fmt.Sprintf("unknown key %q in METADATA's custom", key), "did you mean "+meant+"?")
				}
			}
		}
	}
}
