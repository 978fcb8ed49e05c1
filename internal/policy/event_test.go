// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A repository's own directory may note, too; a note of another form is noted itself, and
// nothing else has a meaning there.
func TestEventLayers(t *testing.T) {
	for name, test := range map[string]struct{ rego, want string }{
		"a note":            {`note contains {"rule": "acme.x", "message": input.host} if input.port == 80`, "acme.x"},
		"without a message": {`note contains {"rule": "acme.x"} if input.port == 80`, "policy.malformed"},
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
