// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const testOrigin = "fumehood.example/test"

// testKey returns a fixed signer key, so that logs are byte-for-byte reproducible.
func testKey(name string) string {
	seed := sha256.Sum256([]byte("fumehood test key " + name))
	key, err := note.NewEd25519VerifierKey(name, ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
	if err != nil {
		panic(err)
	}
	hash := key[len(name)+1 : len(name)+9]
	return "PRIVATE+KEY+" + name + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed[:]...))
}

func testSigner(t testing.TB, name string) *Signer {
	t.Helper()
	s, err := NewSigner(testKey(name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clock returns a clock that starts at a fixed time and advances in milliseconds.
func clock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { now = now.Add(time.Millisecond); return now }
}

func testOptions(t testing.TB) Options {
	return Options{Origin: testOrigin, Signer: testSigner(t, "test.example"), Now: clock()}
}

type body struct {
	ID   string `json:"id"`
	Run  string `json:"run"`
	N    int    `json:"n"`
	Note string `json:"note,omitempty"`
}

func create(t testing.TB) *Log {
	t.Helper()
	l, err := Create(filepath.Join(t.TempDir(), "audit.log"), testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func appendN(t testing.TB, l *Log, n int) {
	t.Helper()
	for range n {
		at := int(l.Entries())
		got, err := l.Append("decision", body{ID: fmt.Sprint("p", at), Run: "go test ./... <&> \u2028", N: at})
		if err != nil || got != int64(at) {
			t.Fatalf("Append = %d, %v, want %d", got, err, at)
		}
	}
}

// logOf returns the bytes of a log with n entries.
func logOf(t testing.TB, n int, seal bool) []byte {
	t.Helper()
	l := create(t)
	appendN(t, l, n)
	if seal {
		if _, err := l.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	return read(t, l.Path())
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func wantStop(t testing.TB, err error, code string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code {
		t.Fatalf("error = %v, want code %s", err, code)
	}
	if stop.Hint == "" || stop.Message == "" {
		t.Errorf("%s has no message or hint: %#v", code, stop)
	}
}

func wantSummary(t testing.TB, data []byte, trust Trust, want Summary) {
	t.Helper()
	got, err := Verify(bytes.NewReader(data), trust)
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	got.Checkpoint, got.Lines, got.SignedBytes = "", 0, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestLogIsSealedAndVerifies(t *testing.T) {
	l := create(t)
	appendN(t, l, 150)
	before := l.Checkpoint()
	seal, err := l.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if l.Origin() != testOrigin || !strings.HasPrefix(seal, testOrigin+"\n150\n") {
		t.Errorf("Origin = %q, seal = %q", l.Origin(), seal)
	}
	if !strings.Contains(seal, "\nsealed\n") || seal != l.Checkpoint() {
		t.Errorf("seal = %q, Checkpoint = %q", seal, l.Checkpoint())
	}
	data := read(t, l.Path())
	want := Summary{State: Sealed, Origin: testOrigin, Key: l.Key(), KeyTrusted: true, Entries: 150}
	for _, known := range []string{"", before, seal, strings.TrimSuffix(before, "\n"), strings.TrimSuffix(seal, "\n")} {
		wantSummary(t, data, Trust{Key: l.Key(), Checkpoint: known}, want)
	}
	want.KeyTrusted = false
	wantSummary(t, data, Trust{}, want)
	if info, err := os.Stat(l.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
}

func TestEphemeralKeyVerifies(t *testing.T) {
	l, err := Create(filepath.Join(t.TempDir(), "a"), Options{Origin: testOrigin})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	appendN(t, l, 2)
	wantSummary(t, read(t, l.Path()), Trust{Key: l.Key()},
		Summary{State: Unsealed, Origin: testOrigin, Key: l.Key(), KeyTrusted: true, Entries: 2})
	other, err := ephemeralSigner(testOrigin)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Verify(bytes.NewReader(read(t, l.Path())), Trust{Key: other.Key()})
	wantVerify(t, err, codeKey, 1, -1)
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, prepare := range map[string]func(path string) error{
		"a file":             func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"a directory":        func(p string) error { return os.Mkdir(p, 0o700) },
		"a dangling symlink": func(p string) error { return os.Symlink(filepath.Join(dir, "nowhere"), p) },
		"a symlink":          func(p string) error { return os.Symlink(dir, p) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			_, err := Create(path, testOptions(t))
			wantStop(t, err, "audit.exists")
		})
	}
	if _, err := os.Lstat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("the symlink was followed")
	}
	_, err := Create(filepath.Join(dir, "none", "log"), testOptions(t))
	wantStop(t, err, "audit.not-writable")
	_, err = Create(filepath.Join(dir, "log"), Options{Origin: "a b"})
	wantStop(t, err, "audit.origin")
	_, err = Create(filepath.Join(dir, "log"), Options{})
	wantStop(t, err, "audit.origin")
}

func TestDeadLogStaysDead(t *testing.T) {
	lanetest.SkipShort(t)
	for name, v := range map[string]any{
		"not JSON":  func() {},
		"too large": strings.Repeat("x", maxEntry),
		"inexact":   uint64(1) << 60,
	} {
		t.Run(name, func(t *testing.T) {
			l := create(t)
			appendN(t, l, 1)
			size := len(read(t, l.Path()))
			_, err := l.Append("result", v)
			wantStop(t, err, "audit.entry")
			_, again := l.Append("result", 1)
			_, seal := l.Seal()
			if again != err || seal != err {
				t.Errorf("later calls: %v, %v, want %v", again, seal, err)
			}
			if got := len(read(t, l.Path())); got != size {
				t.Errorf("a dead log grew from %d to %d bytes", size, got)
			}
		})
	}
	l := create(t)
	_, err := l.Append(`x","time":"`, 1)
	wantStop(t, err, "audit.entry")
}

func TestClosedAndSealedRefuse(t *testing.T) {
	l := create(t)
	if _, err := l.Seal(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Append("x", 1)
	wantStop(t, err, "audit.sealed")
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = l.Append("x", 1)
	wantStop(t, err, "audit.closed")
}

func TestReplacedBeneathFailsClosed(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"renamed": func(p string) error { return os.Rename(p, p+".old") },
		"replaced": func(p string) error {
			data, err := os.ReadFile(p)
			return errors.Join(err, os.Rename(p, p+".old"), os.WriteFile(p, data, 0o600))
		},
		"symlinked": func(p string) error { return errors.Join(os.Rename(p, p+".old"), os.Symlink(p+".old", p)) },
		"cut":       func(p string) error { return os.Truncate(p, 10) },
		"longer": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("x")
				err = errors.Join(err, f.Close())
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := create(t)
			appendN(t, l, 1)
			if err := change(l.Path()); err != nil {
				t.Fatal(err)
			}
			_, err := l.Append("x", 1)
			wantStop(t, err, "audit.replaced")
		})
	}
}

// A log that could not be started is removed, but a file that has taken its name is not.
func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	f, err := createFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := discardFile(path, f); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
	if f, err = createFile(path); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("precious"), 0o600), os.Rename(other, path), discardFile(path, f)); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
		t.Errorf("another's file holds %q, %v", data, err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	lanetest.SkipShort(t)
	l := create(t)
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				add := l.Append
				if i%2 == 1 {
					add = l.Write
				}
				n, err := add("x", g*100+i)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[n] = g*100 + i
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	count := 0
	_, err := Scan(bytes.NewReader(read(t, l.Path())), Trust{Key: l.Key()}, func(e Entry) error {
		count++
		if string(e.Body) != fmt.Sprint(seen[e.N]) {
			t.Errorf("entry %d is %s, want %d", e.N, e.Body, seen[e.N])
		}
		return nil
	})
	if err != nil || count != 160 {
		t.Errorf("%d entries, %v", count, err)
	}
}
