// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package failure

import (
	"strings"
	"testing"
	"time"
)

// The time to read output grows with its length, whatever lines are repeated in it.
func TestNightlyReadIsLinear(t *testing.T) {
	var lines []string
	for _, r := range readers {
		lines = append(lines, r.marks...)
	}
	lines = append(lines, "not ok 1 - a\n  ---", "  ● a\n", " FAIL  a.js > b", "---- a stdout ----", "--- FAIL: TestA (0.00s)\n    a_test.go:5: x", "___ a ___\nE   x", "Error: a", "a: 1: b", "  1) a\n  Message:",
		"FAIL: a (b)\n======", "[ERROR] a  Time elapsed: 1 s <<< FAILURE!", "  1) Failure:\nA#b:", "1) A::b", "@@ -1 +1 @@", "--- a\n+++ b\n@@ -1 +1 @@\n-a", "File \"a.py\", line 1", "1/2 Test #1: a ...***Failed    0.00 sec",
		"expected a to equal b got", strings.Repeat("a.b:1:", 300), strings.Repeat("(", 1900), strings.Repeat("expected: <a", 160))
	for _, line := range lines {
		out := []byte(strings.Repeat(line+"\n", maxBytes/(len(line)+1)))
		start := time.Now()
		readOutput(out, nil, Options{})
		took := time.Since(start)
		t.Logf("%v for %.40q", took.Round(time.Millisecond), line)
		if took > 20*time.Second {
			t.Errorf("%v for %.40q", took, line)
		}
	}
}
