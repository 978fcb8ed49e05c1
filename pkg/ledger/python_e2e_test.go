// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package ledger

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// samePython asks the verifier in Python and Go's the same, and counts the verdicts.
func samePython(t *testing.T, dir string, rows []row) map[string]int {
	t.Helper()
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "asked.json")
	if err := os.WriteFile(manifest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-B", filepath.Join(vectorDir, "ledger.py"), manifest)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	lines := strings.SplitAfter(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != len(rows) {
		t.Fatalf("%d answers to %d rows, %v\n%s", len(lines), len(rows), err, failed.Bytes())
	}
	verdicts := map[string]int{}
	for i, r := range rows {
		var theirs answer
		if err := json.Unmarshal([]byte(lines[i]), &theirs); err != nil {
			t.Fatal(err)
		}
		if ours := ask(t, dir, r); ours.String() != theirs.String() {
			t.Errorf("%s: Go %s, Python %s", r.About, ours, lines[i])
		}
		verdicts[theirs.Verdict]++
	}
	return verdicts
}

// TestE2EPythonVectors: the verifier of ledgers in Python has at most 100 lines and agrees about
// every vector.
func TestE2EPythonVectors(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(vectorDir, "ledger.py"))
	if n := bytes.Count(script, []byte("\n")); err != nil || n > 100 {
		t.Errorf("ledger.py has %d lines, %v", n, err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(vectorDir)); err != nil {
		t.Fatal(err)
	}
	found := samePython(t, filepath.Join(copied, "ledger"), makeVectors(t, t.TempDir()))
	if found["complete"] == 0 || found["proved"] == 0 || found["invalid"] == 0 {
		t.Errorf("verdicts: %v", found)
	}
}

// TestE2EPythonChanged: both verifiers find every change.
func TestE2EPythonChanged(t *testing.T) {
	t.Parallel()
	changeEach(t, 12, samePython)
}
