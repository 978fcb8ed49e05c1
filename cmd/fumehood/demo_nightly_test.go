// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"strings"
	"testing"
)

// In a fresh clone, one command runs the demo, and its log is sealed.
func TestNightlyDemoFromClone(t *testing.T) {
	d := newDesk(t)
	d.clone(t)
	log := d.path("demo.jsonl")
	comment := d.goRun(t, "demo", "--output", "markdown", "--audit", log, "--artifacts", d.path("demo"))
	for part, want := range map[string]string{
		"marker":               "<!-- fumehood:report -->\n",
		"header":               "## ❌ fumehood: 2 failed, 2 denied, 1 waiting for approval, 1 not run, 5 succeeded\n",
		"the test that failed": "billing_test.go:35: invoice 15550 and credit note -15547 leave 3 cents: VAT(-1050, 2100) = -220, want -221",
		"needs":                "it needs <code>&#34;unit&#34;</code>, which did not succeed",
		"un-analysable":        "⛔&nbsp;<b><code>configured</code></b> denied: ",
		"hostile":              "⛔&nbsp;<b><code>bootstrap</code></b> denied: ",
		"why it is denied":     "no policy grants the host <code>&#34;get.billing.example&#34;</code>",
		"too slow":             "⏱️&nbsp;<b><code>soak</code></b> killed: wall limit 2s",
		"approval":             "✋&nbsp;<b><code>close</code></b> needs approval",
		"what is readable":     "on the host is readable inside, so that the demo&#39;s Go test takes seconds",
	} {
		if !strings.Contains(comment, want) {
			t.Errorf("%s: the comment does not hold %q", part, want)
		}
	}
	if strings.Contains(comment, "├─ asm ×") {
		t.Error("the Go test compiles the standard library inside, which go run has compiled outside")
	}
	if t.Failed() {
		t.Logf("%s", comment)
	}
	verdict := d.goRun(t, "verify", log, "--untrusted-key")
	if !strings.Contains(verdict, "sealed") {
		t.Errorf("verify says %q", verdict)
	}
}
