// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

func TestReadSigner(t *testing.T) {
	skey, vkey, err := note.GenerateKey(nil, "ci.example/fumehood")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, text string
		mode       os.FileMode
		ok         bool
	}{
		{"key", skey, 0o600, true},
		{"key and newline", skey + "\n", 0o400, true},
		{"readable by others", skey, 0o644, false},
		{"readable by the group", skey, 0o640, false},
		{"verifier key", vkey, 0o600, false},
		{"empty", "", 0o600, false},
		{"cut", skey[:len(skey)-3], 0o600, false},
		{"two keys", skey + "\n" + skey, 0o600, false},
		{"name with quote", testKey(`a"b`), 0o600, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(test.text), test.mode); err != nil {
				t.Fatal(err)
			}
			s, err := ReadSigner(path)
			if !test.ok {
				wantStop(t, err, "audit.key")
				if strings.Contains(err.Error(), "PRIVATE") {
					t.Errorf("the error shows the key: %v", err)
				}
				return
			}
			if err != nil || s.Key() != vkey {
				t.Fatalf("%v, %v, want %s", s, err, vkey)
			}
		})
	}
	_, err = ReadSigner(filepath.Join(t.TempDir(), "none"))
	wantStop(t, err, "audit.key")
	_, err = ephemeralSigner("a b")
	wantStop(t, err, "audit.key")
}

// TestSignerKeysWithPlus uses keys whose base64 contains a plus.
func TestSignerKeysWithPlus(t *testing.T) {
	found := 0
	for i := range 100 {
		name := fmt.Sprint("k", i)
		text := testKey(name)
		if strings.Count(text, "+") == 4 {
			continue
		}
		found++
		if s, err := NewSigner(text); err != nil || !strings.HasPrefix(s.Key(), name+"+") {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	if found == 0 {
		t.Error("no key with a plus was tried")
	}
}

func TestPrintingShowsNoSecret(t *testing.T) {
	s := testSigner(t, "k")
	secret := testKey("k")
	secret = secret[strings.LastIndex(secret, "+")+1:]
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, s); strings.Contains(got, secret) {
			t.Errorf("%s shows the key", format)
		}
	}
}

// What a shell gives by mistake is not a key or a checkpoint; what a report has is.
func TestTrustCheck(t *testing.T) {
	const name = "vectors.example/key"
	key := testSigner(t, name).Key()
	sum, err := Verify(bytes.NewReader(memoryLog(t, name, "vectors.example/log", vectorBodies(), true)), Trust{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := range []Trust{{}, {Key: key}, {Checkpoint: sum.Checkpoint}, {Key: key, Checkpoint: strings.TrimSuffix(sum.Checkpoint, "\n")}} {
		if err := ok.Check(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
	for _, bad := range []string{"audit.pub", "null", key + "x", " " + key} {
		wantStop(t, Trust{Key: bad}.Check(), "audit.key")
		wantStop(t, Trust{Key: key, Checkpoint: bad}.Check(), "audit.checkpoint")
	}
}
