// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/bounds"
)

// TestNestedPolicies holds that no nesting takes the process down or holds it up: a Go
// stack that overflows cannot be caught.
func TestNestedPolicies(t *testing.T) {
	lanetest.SkipShort(t)
	most := sample.Rounds(t, 250<<10, 20<<10, 10<<10) // bytes
	fill := func(opening, middle, closing string) string {
		n := most / (len(opening) + len(closing))
		return strings.Repeat(opening, n) + middle + strings.Repeat(closing, n)
	}
	head := denyHead + "x == 1\n\nx := "
	for name, text := range map[string]string{
		"brackets only": strings.Repeat("[", most),
		"braces only":   strings.Repeat("{", most),
		"arrays":        head + fill("[", "1", "]"),
		"objects":       head + fill(`{"a":`, "1", "}"),
		"sets":          head + fill("{", "1", "}"),
		"parentheses":   head + fill("(", "1", ")"),
		"calls":         head + fill("abs(", "1", ")"),
		"comprehension": head + fill("[1|", "true", "]"),
		"every":         denyHead + "x == 1\n\nx := 1 if " + fill("every a in [1] {", "true", "}"),
		"sums":          head + strings.Repeat("1+", most/2) + "1",
		"minus":         head + strings.Repeat("-", most) + "1",
		"unions":        head + strings.Repeat("{1}|", most/4) + "{1}",
		"comparisons":   denyHead + strings.Repeat("1==", most/3) + "1",
		"else":          head + "1 if false " + strings.Repeat("else := 1 if false ", most/19),
		"not":           denyHead + strings.Repeat("not ", most/4) + "true",
		"references":    denyHead + "input" + strings.Repeat(".a", most/2),
		"indices":       denyHead + "input.command.argv" + fill("[input.command.argv", "[0]", "]"),
		"template":      head + fill(`$"{`, "1", `}"`),
		"template raw":  head + fill("$`{$\"{", "1", "}\"}`"),
		"strings":       head + `"` + strings.Repeat(`\"`, most/2) + `"`,
		"with":          denyHead + "true" + strings.Repeat(" with input as 1", most/17),
		"some":          denyHead + "{" + strings.Repeat("some a, b in [1];", most/18) + "true}",
		"rules":         strings.Repeat("package fumehood.command\n", most/26),
		"rules many":    denyHead + "true\n" + strings.Repeat("p(x) if x\n", most/10),
		"imports":       "package fumehood.command\n" + strings.Repeat("import data.fumehood.lib\n", most/25) + denyHead[25:] + "true",
		"heads":         "package fumehood.command\n\ndeny" + strings.Repeat(".a", most/2) + " := 1",
		"annotation":    "# METADATA\n# custom: " + strings.Repeat("[", most/2) + "\n" + denyHead + "true",
	} {
		t.Run(name, func(t *testing.T) {
			began := bounds.ProcessorTime()
			layers := []policy.Layer{{Name: "deep", Role: policy.Grants, Files: []policy.File{{Name: "a.rego", Content: []byte(text)}}}}
			_, err := policy.New(t.Context(), policy.Options{Layers: layers})
			if code := codeOf(err); err != nil && !strings.HasPrefix(code, "policy.") {
				t.Errorf("%v", err)
			}
			_, checked := policy.Check(t.Context(), layers)
			if checked != nil && codeOf(checked) == "" {
				t.Errorf("%v", checked)
			}
			used := bounds.ProcessorTime() - began
			if used > time.Minute {
				t.Errorf("used %v", used)
			}
			t.Logf("%v: %.150v", used.Round(time.Millisecond), err)
		})
	}
}
