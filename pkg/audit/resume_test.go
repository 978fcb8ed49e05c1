// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func reopen(t *testing.T, data []byte) (*Log, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path, testOptions(t))
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, path, err
}

// TestResumeAfterEveryCut continues a log that was cut anywhere. Signed entries
// stay, the torn part is recorded, and the result is a complete log again.
func TestResumeAfterEveryCut(t *testing.T) {
	whole := logOf(t, 2, false)
	key := testSigner(t, "test.example").Key()
	for _, cut := range places(t, len(whole)+1) {
		before, err := Verify(bytes.NewReader(whole[:cut]), Trust{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		l, path, err := reopen(t, whole[:cut])
		if before.Checkpoint == "" {
			wantStop(t, err, "audit.broken")
			continue
		}
		if err != nil {
			t.Fatalf("cut %d: %v", cut, err)
		}
		appendN(t, l, 1)
		if _, err := l.Seal(); err != nil {
			t.Fatal(err)
		}
		var all []Entry
		after, err := Scan(bytes.NewReader(read(t, path)), Trust{Key: key, Checkpoint: before.Checkpoint}, func(e Entry) error {
			all = append(all, e)
			return nil
		})
		if err != nil || after.State != Sealed || after.Entries != before.Entries+2 {
			t.Fatalf("cut %d: %v, %v", cut, after, err)
		}
		var told resumed
		e := all[before.Entries]
		if err := json.Unmarshal(e.Body, &told); err != nil || e.Kind != "resumed" {
			t.Fatalf("cut %d: %s %s", cut, e.Kind, e.Body)
		}
		if told.Offset != before.SignedBytes || told.Bytes != before.TornBytes || !bytes.Equal(told.Head, whole[before.SignedBytes:cut]) {
			t.Errorf("cut %d: resumed says %+v", cut, told)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	whole := logOf(t, 3, false)
	changed := bytes.Replace(whole, []byte(`"id":"p1"`), []byte(`"id":"p9"`), 1)
	_, path, err := reopen(t, changed)
	wantStop(t, err, "audit.broken")
	wantVerify(t, err, CodeChanged, 5, 1)
	if !bytes.Equal(read(t, path), changed) {
		t.Error("a broken log was written to")
	}

	_, path, err = reopen(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, testOptions(t))
	wantStop(t, err, "audit.locked")

	good := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(good, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	o.Signer = nil
	_, err = Open(good, o)
	wantStop(t, err, "audit.key")
	o.Signer = testSigner(t, "other.example")
	_, err = Open(good, o)
	wantStop(t, err, "audit.broken")
	o = testOptions(t)
	o.Origin = "other"
	_, err = Open(good, o)
	wantStop(t, err, "audit.broken")

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	_, err = Open(link, testOptions(t))
	wantStop(t, err, "audit.broken")
	_, err = Open(good+".none", testOptions(t))
	wantStop(t, err, "audit.not-writable")
}
