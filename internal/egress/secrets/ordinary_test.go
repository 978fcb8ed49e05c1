// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ordinary output of tools contains no secret: checksums, digests, identifiers,
// coverage, words like token and key.
func TestOrdinaryLogs(t *testing.T) {
	files, err := filepath.Glob("testdata/ordinary/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	r := redactor(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, tally := r.Text(text)
		before, after := strings.Split(string(text), "\n"), strings.Split(string(out), "\n")
		if len(tally.Found) == 0 && string(out) == string(text) {
			continue
		}
		t.Errorf("%s: %v", file, tally.Found)
		for i := range min(len(before), len(after)) {
			if before[i] != after[i] {
				t.Errorf("%.200q became %.200q", before[i], after[i])
			}
		}
	}
}
