// SPDX-License-Identifier: Apache-2.0

package manual_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"

	"github.com/fumehood/fumehood/internal/author/manual"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var update = flag.Bool("update", false, "rewrite the page of the default policy")

// The page of the default policy in this repository is that of its rules.
func TestDefaultPage(t *testing.T) {
	lanetest.SkipShort(t)
	l, err := policy.ShippedLayer()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := manual.ListRules(l)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := manual.Write(&page, rules); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "..", "policies", "RULES.md")
	if *update {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stands, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stands, page.Bytes()) {
		t.Error("policies/RULES.md is not what the rules' METADATA says: go test ./internal/author/manual -update")
	}
	for _, r := range rules {
		if (r.Set == "deny" || r.Set == "ask") && (r.Severity == "" || r.Category == "") {
			t.Errorf("%s:%d: %s has no severity or no category", r.File, r.Line, r.ID)
		}
	}
	if len(rules) < 80 {
		t.Errorf("only %d rules are described", len(rules))
	}
}

const hostile = "package fumehood.command\n\n# METADATA\n" +
	"# title: '<img src=x onerror=alert(1)> [a](javascript:b) **x** @everyone fixes #1 | ```'\n# custom:\n#   rule: x.y\n" +
	"#   match: ['`a``b', '<script>x</script>', \"a\\u202eb\\e[31m\\n# h\", {path: '</code><b>'}, 7]\n" +
	"deny contains {\"rule\": \"x.y\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"x\"\n"

// A title or an example becomes no HTML, link or heading.
func TestHostilePage(t *testing.T) {
	rules, err := manual.ListRules(policy.Layer{Name: "<b>`l`\n# x", Files: []policy.File{{Name: "a.rego", Content: []byte(hostile)}}})
	if err != nil || len(rules) != 1 || len(rules[0].Match) != 5 {
		t.Fatalf("%+v, %v", rules, err)
	}
	var page, html bytes.Buffer
	if err := manual.Write(&page, rules); err != nil {
		t.Fatal(err)
	}
	if err := goldmark.Convert(page.Bytes(), &html); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<img", "<script", "<a ", "<em>", "\u202e", "\x1b", "<b>"} {
		if strings.Contains(html.String(), bad) {
			t.Errorf("the page contains %q:\n%s", bad, html.String())
		}
	}
	if n := strings.Count(html.String(), "<h"); n != 4 {
		t.Errorf("%d headings:\n%s", n, html.String())
	}
}

func TestRulesOfWhatIsNoRego(t *testing.T) {
	_, err := manual.ListRules(policy.Layer{Name: "l", Files: []policy.File{{Name: "a.rego", Content: []byte("package {")}}})
	if err == nil || !strings.Contains(err.Error(), "cannot parse") {
		t.Error(err)
	}
}

// TestSelect selects rules by id, and suggests the nearest id for an unknown one.
func TestSelect(t *testing.T) {
	rules, err := manual.ListRules()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"network.client": "network.client", "parse.eval": "parse."} {
		if got, err := manual.SelectRules(rules, id); err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("%s: %v, %v, want %s", id, got, err, want)
		}
	}
	if all, err := manual.SelectRules(rules); err != nil || len(all) != len(rules) {
		t.Errorf("%d of %d rules, %v", len(all), len(rules), err)
	}
	for id, hint := range map[string]string{"network.cleint": "did you mean network.client?", "code.rnu": "did you mean code.run?", "zzzzzzzzzzzz": "list all rules: fumehood policy docs"} {
		_, err := manual.SelectRules(rules, "code.run", id)
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "policy.unknown-key" || stop.Message != fmt.Sprintf("unknown rule %q", id) || stop.Hint != hint {
			t.Errorf("%s: %v, want hint %q", id, err, hint)
		}
	}
}
