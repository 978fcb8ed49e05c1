// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/evidence"
	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/exporttest"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	vectors  = "../../../../testdata/vectors/"
	cosigner = "vectors.example/witness+f2b52b21+AfsRPyVNOnpHN+JtXUBp7yuW0B9KTy8Fr1CAg4++WWGt" // of sealed.cosigned
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// THREATS 30, 93: a log is whole only if one thing vouches for it, or its own key is accepted.
func TestCheck(t *testing.T) {
	own := evidence.Check{AnyKey: true}
	found, err := own.VerifyLog(vectors + "sealed.log")
	if err != nil || !found.Whole {
		t.Fatalf("%+v, %v", found, err)
	}
	byKey, byCheckpoint := audit.Trust{Key: found.Key}, audit.Trust{Checkpoint: found.Checkpoint}
	for name, c := range map[string]struct {
		check              evidence.Check
		log, code          string
		whole, replaceable bool
	}{
		"nothing":              {check: evidence.Check{}, replaceable: true},
		"key":                  {check: evidence.Check{Trust: byKey}, whole: true},
		"checkpoint":           {check: evidence.Check{Trust: byCheckpoint}, whole: true},
		"another log's key":    {check: evidence.Check{Trust: audit.Trust{Key: cosigner}}},
		"not sealed":           {check: own, log: "unsealed.log"},
		"altered":              {check: own, log: "entry-edited.log"},
		"cosigned":             {check: evidence.Check{Trust: audit.Trust{Key: cosigner}, Cosigned: vectors + "sealed.cosigned"}, whole: true},
		"cosigned by another":  {check: evidence.Check{Trust: byKey, Cosigned: vectors + "sealed.cosigned"}},
		"cosigned another log": {check: evidence.Check{Trust: audit.Trust{Key: cosigner}, Cosigned: vectors + "sealed.cosigned"}, log: "sealed-100.log"},
		"no log":               {check: own, log: "none", code: "audit.not-readable"},
		"no cosignature":       {check: evidence.Check{Trust: byKey, Cosigned: "none"}, code: "audit.not-readable"},
		"no key":               {check: evidence.Check{Trust: audit.Trust{Key: "null"}}, code: "audit.key"},
		"cosigned or any":      {check: evidence.Check{Trust: byKey, Cosigned: vectors + "sealed.cosigned", AnyKey: true}, code: "verify.trust"},
	} {
		if c.log == "" {
			c.log = "sealed.log"
		}
		found, err := c.check.VerifyLog(vectors + c.log)
		code := ""
		if f := proposal.FailureOf(err); f != nil {
			code = f.Code
		}
		if code != c.code || found.Whole != c.whole || found.IsReplaceable() != c.replaceable {
			t.Errorf("%s: %q, whole %v, replaceable %v: %v, %v", name, code, found.Whole, found.IsReplaceable(), found, err)
		}
	}
}

// A log is written as decisions; of an altered log nothing is, and no form is the default.
func TestExport(t *testing.T) {
	sealed, a := exporttest.WriteLog(t, exporttest.Run{})
	cut, _ := exporttest.WriteLog(t, exporttest.Run{Cut: true})
	dir, said := t.TempDir(), ""
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	x := evidence.Export{Form: evidence.Decisions, Trust: audit.Trust{Key: a.Key}, Path: filepath.Join(dir, "out"), Warn: func(words ...string) { said += strings.Join(words, "\n") }}
	if _, err := x.ExportFile(t.Context(), file("altered", bytes.Replace(sealed, []byte("unit"), []byte("tinu"), 1))); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != export.CodeUnverified {
		t.Errorf("an altered log: %v", err)
	}
	if _, err := os.Stat(x.Path); err == nil {
		t.Error("an altered log was written")
	}
	if whole, err := x.ExportFile(t.Context(), file("sealed", sealed)); err != nil || !whole || said != "" || len(read(t, x.Path)) == 0 {
		t.Errorf("%v, %v, %q", whole, err, said)
	}
	var out bytes.Buffer
	x.Trust, x.Path, x.Out = audit.Trust{}, "", &out
	if whole, err := x.ExportFile(t.Context(), file("cut", cut)); err != nil || whole || out.Len() == 0 || !strings.Contains(said, "the log is ") {
		t.Errorf("a log that was cut off: %v, %v, %q", whole, err, said)
	}
	if _, err := (evidence.Export{}).ExportFile(t.Context(), vectors+"sealed.log"); err == nil {
		t.Error("an export without a form")
	}
}

// A valid proof says what it proves; one of another key, or changed, is a fault and no error.
func TestProof(t *testing.T) {
	found, err := (evidence.Check{AnyKey: true}).VerifyLog(vectors + "sealed-100.log")
	if err != nil {
		t.Fatal(err)
	}
	for name, valid := range map[string]bool{"entry-97.tlog-proof": true, "index.tlog-proof": false} {
		v, err := evidence.VerifyProof(vectors+name, audit.Trust{Key: found.Key})
		text, failed := json.Marshal(v)
		if err != nil || failed != nil || (v.Fault == nil) != valid || bytes.HasPrefix(text, []byte(`{"error":`)) == valid || v.String() == "" {
			t.Errorf("%s: %v, %s, %v", name, v, text, errors.Join(err, failed))
		}
	}
	if v, err := evidence.VerifyProof(vectors+"entry-97.tlog-proof", audit.Trust{Key: cosigner}); err != nil || v.Fault == nil {
		t.Errorf("by another key: %v, %v", v, err)
	}
	if _, err := evidence.VerifyProof("none", audit.Trust{Key: found.Key}); proposal.FailureOf(err) == nil {
		t.Errorf("no file: %v", err)
	}
}
