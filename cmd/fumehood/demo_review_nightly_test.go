// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The demo's second act needs no key: the model's answers are recorded, and what they lead to is
// run, verified and printed.
func TestNightlyDemoReview(t *testing.T) {
	d := newDesk(t)
	text := string(runCommand(t, d.command(t.Context(), "demo", "--review")))
	for _, want := range []string{"1 verified finding of 2\n", "credit-note-rounding  billing.go:17 (high)", "suggestion tried: the reproducer succeeds with it", "1 finding not reproduced", "recorded conversation: 2 rounds", "2 of 3 commands ran"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	logs, err := filepath.Glob(d.path("state/fumehood/*/audit.jsonl"))
	if err != nil || len(logs) < 4 {
		t.Fatalf("%d logs: %v", len(logs), err)
	}
	for _, log := range logs {
		if verdict := string(runCommand(t, d.command(t.Context(), "verify", "--untrusted-key", log))); !strings.Contains(verdict, "sealed") {
			t.Errorf("%s: %s", log, verdict)
		}
	}
}
