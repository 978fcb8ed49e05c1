// SPDX-License-Identifier: Apache-2.0

package module_test

import (
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/module"
)

// TestLongTextsAreNotJoined: what a file of some kilobytes could expand to any size is left
// to the evaluation, which is bounded.
func TestLongTextsAreNotJoined(t *testing.T) {
	text := "package fumehood.command\n\nx := concat(\"" + strings.Repeat("-", 1000) + "\", [" + strings.Repeat(`"a",`, 1000) + "])\n"
	got, err := module.Parse("l", "a.rego", []byte(text), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.Rules[0].Head.Value.Value.(ast.Call); !ok {
		t.Errorf("joined to %d bytes", len(got.Rules[0].Head.Value.String()))
	}
}

// TestLiteralsAreJoined: a text that is written in parts is one literal wherever it is, and
// nothing else is changed.
func TestLiteralsAreJoined(t *testing.T) {
	for written, want := range map[string]string{
		"x := concat(\"\", [`^a|`, `b$`])":                              "x := `^a|b$`",
		"x := {\"k\": concat(\"-\", [\"a\", \"b\"])}":                   "x := {\"k\": \"a-b\"}",
		"x := {concat(\"\", [\"a\", \"b\"])}":                           "x := {\"ab\"}",
		"x if regex.match(concat(\"\", [\"a\", \"b\"]), \"c\")":         "x if regex.match(\"ab\", \"c\")",
		"x if concat(\"|\", [\"a\", concat(\"\", [\"b\"])]) == \"a|b\"": "x if \"a|b\" == \"a|b\"",
		"x := concat(\"\", [\"a\", input.y])":                           "x := concat(\"\", [\"a\", input.y])",
		"x := concat(input.y, [\"a\"])":                                 "x := concat(input.y, [\"a\"])",
		"x := concat(\"\", {\"b\", \"a\"})":                             "x := concat(\"\", {\"b\", \"a\"})",
		"x := concat(\"\", [\"a\", 1])":                                 "x := concat(\"\", [\"a\", 1])",
		"x := concat(\"a\", [])":                                        "x := \"\"",
	} {
		got, err := module.Parse("l", "a.rego", []byte("package fumehood.command\n\n"+written), false)
		if err != nil {
			t.Fatal(written, err)
		}
		if rule := ast.MustParseModuleWithOpts("package fumehood.command\n\n"+want, ast.ParserOptions{RegoVersion: ast.RegoV1}).Rules[0]; got.Rules[0].Compare(rule) != 0 {
			t.Errorf("%s became %s, want %s", written, got.Rules[0], rule)
		}
	}
}
