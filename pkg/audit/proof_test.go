// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestProveEveryEntry(t *testing.T) {
	for _, entries := range []int{1, 2, 3, 7, 8, 13} {
		bodies := make([]any, entries)
		for i := range bodies {
			bodies[i] = body{ID: fmt.Sprint("p", i)}
		}
		data := memoryLog(t, "k", "o", bodies, entries%2 == 0)
		key := testSigner(t, "k").Key()
		for n := range int64(entries) {
			proof, err := Prove(bytes.NewReader(data), Trust{Key: key}, n)
			if err != nil {
				t.Fatal(err)
			}
			got, err := CheckProof(proof, Trust{Key: key})
			if err != nil {
				t.Fatalf("entry %d of %d: %v\n%s", n, entries, err, proof)
			}
			want := fmt.Sprintf(`{"id":"p%d","n":0,"run":""}`, n)
			if string(got.Entry.Body) != want || got.Entry.N != n || got.Size != int64(entries) || got.Origin != "o" || got.Sealed != (entries%2 == 0) {
				t.Errorf("entry %d of %d: %+v", n, entries, got)
			}
		}
	}
}

// TestProofChangedAnywhere changes, removes and adds each byte of a proof.
func TestProofChangedAnywhere(t *testing.T) {
	data := memoryLog(t, "k", "o", vectorBodies(), true)
	key := testSigner(t, "k").Key()
	proof, err := Prove(bytes.NewReader(data), Trust{Key: key}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range proof {
		for _, bad := range [][]byte{
			append(append(bytes.Clone(proof[:i]), b^1), proof[i+1:]...),
			append(bytes.Clone(proof[:i]), proof[i+1:]...),
			append(append(bytes.Clone(proof[:i]), '\n'), proof[i:]...),
			proof[:i],
		} {
			if got, err := CheckProof(bad, Trust{Key: key}); err == nil {
				t.Fatalf("changed at byte %d, accepted: %+v\n%s", i, got, bad)
			}
		}
	}
	if _, err := CheckProof(proof, Trust{Key: testSigner(t, "other").Key()}); err == nil {
		t.Error("accepted with another key")
	}
	if _, err := CheckProof(proof, Trust{Key: "nonsense"}); err == nil {
		t.Error("accepted with a malformed key")
	}
	if proved, err := CheckProof(proof, Trust{Key: key}); err != nil {
		t.Error(err)
	} else if _, err := CheckProof(proof, Trust{Key: key, Checkpoint: strings.TrimSuffix(proved.Checkpoint, "\n")}); err != nil {
		t.Errorf("its checkpoint without the last newline: %v", err)
	}
	if got, err := CheckProof(proof, Trust{Key: key, Checkpoint: "other\n"}); err == nil || got.Size != 0 {
		t.Errorf("accepted for another checkpoint: %+v, %v", got, err)
	}
	// Another entry under the same number, and the same entry under another.
	other := base64.StdEncoding.EncodeToString([]byte(`{"body":1,"kind":"x","time":"2026-01-02T03:04:05.001Z"}`))
	lines := strings.Split(string(proof), "\n")
	for at, line := range map[int]string{1: "extra " + other, 2: "index 1"} {
		changed := append([]string(nil), lines...)
		changed[at] = line
		if _, err := CheckProof([]byte(strings.Join(changed, "\n")), Trust{Key: key}); err == nil || !strings.Contains(err.Error(), "not in the log") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestProveRefuses(t *testing.T) {
	data := memoryLog(t, "k", "o", vectorBodies(), false)
	key := testSigner(t, "k").Key()
	for name, n := range map[string]int64{"too large": 4, "negative": -1} {
		if _, err := Prove(bytes.NewReader(data), Trust{Key: key}, n); !errors.Is(err, ErrNoEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
	lines := rows(data)
	unsigned := bytes.Join(lines[:len(lines)-1], nil)
	if _, err := Prove(bytes.NewReader(unsigned), Trust{Key: key}, 3); !errors.Is(err, ErrNoEntry) {
		t.Errorf("unsigned entry: %v", err)
	}
	_, err := Prove(bytes.NewReader(bytes.Replace(data, []byte("unit"), []byte("Unit"), 1)), Trust{Key: key}, 3)
	wantVerify(t, err, codeChanged, 3, 0)
}

func TestFind(t *testing.T) {
	data := memoryLog(t, "k", "o", vectorBodies(), false)
	withID := func(id string) func(Entry) bool {
		return func(e Entry) bool { return bytes.Contains(e.Body, []byte(`"id":"`+id+`"`)) }
	}
	key := testSigner(t, "k").Key()
	for id, want := range map[string]string{"repro": "[2]", "none": "[]", "unit": "[0]"} {
		got, _, err := Find(bytes.NewReader(data), Trust{Key: key}, withID(id))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v", id, got, err)
		}
	}
	lines := rows(data)
	unsigned := bytes.Join(lines[:len(lines)-1], nil)
	if got, sum, err := Find(bytes.NewReader(unsigned), Trust{Key: key}, withID("deny")); err != nil || len(got) != 0 || sum.Unsigned != 1 {
		t.Errorf("unsigned entry: %v, %+v, %v", got, sum, err)
	}
}
