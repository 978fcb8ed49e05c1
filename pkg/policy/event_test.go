// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func isEvent(a *ast.Annotations) bool { return path.Dir(a.Location.File) == "event" }

func notes(t testing.TB, e *policy.Engine, v proposal.Event) []string {
	t.Helper()
	findings, err := e.Event(t.Context(), v)
	if err != nil {
		t.Fatalf("cannot judge %+v: %v", v, err)
	}
	var rules []string
	for _, f := range findings {
		if f.Message == "" || f.Event.Kind != v.Kind {
			t.Errorf("finding %+v of %+v", f, v)
		}
		rules = append(rules, f.Rule)
	}
	return rules
}

// TestEventExamples runs the examples of the rules about what was seen.
func TestEventExamples(t *testing.T) {
	e := shipped(t)
	rules := 0
	for _, a := range annotations(t) {
		rule, _ := a.Custom["rule"].(string)
		if rule == "" || !isEvent(a) {
			continue
		}
		rules++
		for key, want := range map[string]bool{"match": true, "not_match": false} {
			list := events(t, a, key)
			if a.Title == "" || len(list) == 0 {
				t.Errorf("%s lacks a title or examples", rule)
			}
			for _, v := range list {
				if got := notes(t, e, v); slices.Contains(got, rule) != want {
					t.Errorf("%s about %+v: %v, want it %v", rule, v, got, want)
				}
			}
		}
	}
	if rules != 7 {
		t.Errorf("%d rules carry examples, want 7", rules)
	}
}

func events(t *testing.T, a *ast.Annotations, key string) []proposal.Event {
	t.Helper()
	list, _ := a.Custom[key].([]any)
	var all []proposal.Event
	for _, item := range list {
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		v := proposal.Event{Command: "t", Program: "/tmp/x/stats.test"}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%v: %s: %v", a.Custom["rule"], text, err)
		}
		all = append(all, v)
	}
	return all
}

// A repository's own folder may note too; a note of another form stops the run, and
// nothing else has a meaning there.
func TestEventLayers(t *testing.T) {
	for name, test := range map[string]struct{ rego, want string }{
		"a note":            {`note contains {"rule": "acme.x", "message": input.host} if input.port == 80`, "acme.x"},
		"without a message": {`note contains {"rule": "acme.x"} if input.port == 80`, "policy.unknown-key"},
		"a deny":            {`deny contains {"rule": "acme.x", "message": "m", "suggestion": "s"}`, "policy.unknown-key"},
		"another field":     {`note contains {"rule": "acme.x", "message": input.argv}`, "policy.compile"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x.rego"), []byte("package fumehood.event\n\n"+test.rego+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, dir)})
			var got []proposal.Finding
			if err == nil {
				got, err = e.Event(t.Context(), proposal.Event{Kind: proposal.EventConnect, Address: "tcp 192.0.2.1:80"})
			}
			said := ""
			if err != nil {
				said = proposal.FailureOf(err).Code
			} else if len(got) == 1 {
				said = got[0].Rule
			}
			if said != test.want {
				t.Errorf("said %q (%v, %v), want %q", said, got, err, test.want)
			}
		})
	}
}

// What a program calls itself does not break out of a message.
func TestEventHostile(t *testing.T) {
	e := shipped(t)
	v := proposal.Event{Kind: proposal.EventPrivilege, Call: "mount", Program: "/tmp/a\" `x` \n::error::y"}
	found, err := e.Event(t.Context(), v)
	if err != nil || len(found) != 1 || strings.ContainsAny(found[0].Message, "\n") || !strings.HasPrefix(found[0].Message, `"a\" `) {
		t.Errorf("%+v, %v", found, err)
	}
}

func BenchmarkEvent(b *testing.B) {
	e := shipped(b)
	v := proposal.Event{Kind: proposal.EventConnect, Program: "/usr/bin/python3.11", Address: "tcp 192.0.2.1:443", Errno: "ENETUNREACH"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Event(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}
