// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A file of decisions has its name only when it is complete.
func TestWriterFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "decisions.jsonl")
	for _, end := range []func(*Writer) error{func(w *Writer) error { w.Abandon(); return nil }, (*Writer).Close} {
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(Decision{DecisionID: "r/1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the file has its name before its end")
		}
		if err := end(w); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if data, unread := os.ReadFile(path); err != nil || unread != nil || len(data) == 0 || len(left) != 1 {
		t.Errorf("%d bytes, %d files, %v, %v", len(data), len(left), err, unread)
	}
	if _, err := Create(filepath.Join(dir, "none", "x")); proposal.FailureOf(err).Code != "decisions.not-writable" {
		t.Errorf("%v", err)
	}
}

func TestUnverified(t *testing.T) {
	other := errors.New("x")
	for code, err := range map[string]error{CodeUnverified: &audit.VerifyError{Code: "entry-changed"}, "audit.not-readable": &audit.VerifyError{Code: "read"}, "internal": other} {
		if got := proposal.FailureOf(UnverifiedError("log", err)); got.Code != code {
			t.Errorf("%v is %+v, want %s", err, got, code)
		}
	}
	if err := UnverifiedError("log", nil); err != nil {
		t.Error(err)
	}
}
