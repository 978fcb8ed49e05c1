// SPDX-License-Identifier: Apache-2.0

package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An id is proved by its last entry, a number is that entry, and what the log does not
// hold is an error.
func TestProve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Create(path, audit.Options{Origin: "fumehood/test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"decision", "start", "result", "events"} {
		if _, err := log.Append(kind, map[string]string{"id": "unit"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Seal(); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"unit": `"kind":"result"`, "0": `"kind":"decision"`, "3": `"kind":"events"`, "none": "", "9": "", "-1": ""} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := ProveEntry(f, audit.Trust{}, id)
		f.Close()
		if want == "" {
			if proposal.FailureOf(err).Code != "audit.no-entry" {
				t.Errorf("%s: %v", id, err)
			}
			continue
		}
		proved, wrong := audit.CheckProof(proof, audit.Trust{Key: log.Key()})
		if err != nil || wrong != nil || !strings.Contains(string(proved.Entry.Leaf), want) || !strings.HasPrefix(proved.String(), "valid proof: entry ") {
			t.Errorf("%s: %v, %v, %s", id, err, wrong, proved)
		}
	}
}
