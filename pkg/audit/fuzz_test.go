// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// FuzzVerify reads hostile logs. If Verify finds nothing wrong, the entries hash to
// the signed root, computed by tlog and not by this package, and the whole log is
// what a writer would write.
func FuzzVerify(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var hashes hashes
		var entries []Entry
		sum, err := Scan(bytes.NewReader(data), Trust{}, func(e Entry) error {
			entries = append(entries, e)
			return nil
		})
		if err != nil {
			if sum.State != Broken {
				t.Fatalf("%v with error %v", sum.State, err)
			}
			return
		}
		if sum.Checkpoint == "" {
			return
		}
		v, err := note.NewVerifier(sum.Key)
		if err != nil {
			t.Fatal(err)
		}
		n, err := note.Open([]byte(sum.Checkpoint), note.VerifierList(v))
		if err != nil {
			t.Fatalf("checkpoint of a good log: %v", err)
		}
		point, err := parseCheckpoint(n.Text)
		if err != nil || point.size != sum.Entries || point.sealed != (sum.State == Sealed) {
			t.Fatalf("%+v, %v of %+v", point, err, sum)
		}
		if int64(len(entries)) != sum.Entries+sum.Unsigned || sum.SignedBytes+sum.TornBytes != int64(len(data)) {
			t.Fatalf("%d entries, %d bytes: %+v", len(entries), len(data), sum)
		}
		for _, e := range entries[:sum.Entries] {
			leaf := leafOf(e.Kind, e.Time, e.Body)
			if !bytes.Equal(leaf, e.Leaf) || !bytes.Contains(data, entryLine(e.N, leaf)) {
				t.Fatalf("entry %d is not what it was read from: %s", e.N, leaf)
			}
			if err := hashes.Add(e.N, leaf); err != nil {
				t.Fatal(err)
			}
		}
		if root, err := tlog.TreeHash(sum.Entries, hashes); err != nil || root != point.root {
			t.Fatalf("root %v, %v, signed is %v", root, err, point.root)
		}
	})
}

// FuzzCheckProof checks that only proofs that Prove writes are accepted.
func FuzzCheckProof(f *testing.F) {
	data := memoryLog(f, "vectors.example/key", "vectors.example/log", vectorBodies(), true)
	key := testSigner(f, "vectors.example/key").Key()
	genuine := map[string]bool{}
	for n := range int64(4) {
		proof, err := Prove(bytes.NewReader(data), Trust{Key: key}, n)
		if err != nil {
			f.Fatal(err)
		}
		genuine[string(proof)] = true
		f.Add(proof)
	}
	f.Fuzz(func(t *testing.T, proof []byte) {
		if _, err := CheckProof(proof, Trust{Key: key}); err == nil && !genuine[string(proof)] {
			t.Fatalf("accepted:\n%s", proof)
		}
	})
}
