// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/fumehood/fumehood/internal/lanetest"
	"github.com/fumehood/fumehood/pkg/audit"
)

func newSigner(t testing.TB, name string) *audit.Signer {
	t.Helper()
	s, err := audit.EphemeralSigner(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func leafOf(n int) []byte { return fmt.Appendf(nil, "fumehood/run-%d\n%d\n\n— sig\n", n, n) }

// filled is a ledger of n entries, and its heads after each.
func filled(t testing.TB, signer *audit.Signer, dir string, n int) (*Ledger, []Head) {
	t.Helper()
	var heads []Head
	for i := range n {
		at, h, err := Append(dir, signer, leafOf(i))
		if err != nil || at != int64(i) || h.Size != at+1 {
			t.Fatalf("entry %d became %d of %d: %v", i, at, h.Size, err)
		}
		heads = append(heads, h)
	}
	l, err := Open(dir, signer.Key())
	if err != nil {
		t.Fatal(err)
	}
	return l, heads
}

// root is that of RFC 6962, section 2.1, written from there.
func root(leaves [][]byte) tlog.Hash {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0]...))
	default:
		k := 1
		for k*2 < n {
			k *= 2
		}
		left, right := root(leaves[:k]), root(leaves[k:])
		return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
	}
}

func wants(t *testing.T, what string, err error, code string) {
	t.Helper()
	if !isCode(err, code) {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func TestLedger(t *testing.T) {
	lanetest.SkipShort(t)
	const n = full + 9
	signer := newSigner(t, "ledger.example")
	dir := filepath.Join(t.TempDir(), "new", "ledger")
	l, heads := filled(t, signer, dir, n)
	var leaves [][]byte
	for i, h := range heads {
		if leaves = append(leaves, leafOf(i)); i%41 == 0 && h.Root != root(leaves) {
			t.Errorf("another root of %d entries", i+1)
		}
	}
	if h, err := l.Verify(); err != nil || h != heads[n-1] {
		t.Errorf("%+v, %v", h, err)
	}
	for _, i := range []int{0, 1, 255, 256, n - 1} {
		proof, err := l.Prove(leafOf(i))
		if err != nil {
			t.Fatal(err)
		}
		if leaf, at, err := l.CheckProof(proof); err != nil || at != int64(i) || string(leaf) != string(leafOf(i)) {
			t.Errorf("proof of %d: %q, %d, %v", i, leaf, at, err)
		}
		if err := l.Since(heads[i].Signed); err != nil {
			t.Errorf("since %d entries: %v", i+1, err)
		}
	}
	if at, h, err := Append(dir, signer, leafOf(7)); err != nil || at != 7 || h != heads[n-1] {
		t.Errorf("an entry that is there became %d of %d: %v", at, h.Size, err)
	}
	_, err := l.Prove([]byte("another"))
	wants(t, "another entry", err, CodeMissing)
}

// Whatever is changed, removed or cut off is noticed, and nothing is added to it.
func TestChanged(t *testing.T) {
	lanetest.SkipShort(t)
	signer := newSigner(t, "ledger.example")
	for _, spoil := range []struct {
		name string
		with func(path string, data []byte) error
	}{
		{"changed", func(path string, data []byte) error {
			data[len(data)/2] ^= 1
			return os.WriteFile(path, data, 0o600)
		}},
		{"cut off", func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)-1], 0o600) }},
		{"longer", func(path string, data []byte) error { return os.WriteFile(path, append(data, 0), 0o600) }},
		{"removed", func(path string, _ []byte) error { return os.Remove(path) }},
		{"a directory", func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
	} {
		for _, file := range []string{"checkpoint", "tile/entries/000.p/9", "tile/0/000.p/9"} {
			t.Run(spoil.name+" "+file, func(t *testing.T) {
				dir := t.TempDir()
				l, _ := filled(t, signer, dir, 9)
				path := filepath.Join(dir, file)
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := spoil.with(path, data); err != nil {
					t.Fatal(err)
				}
				if _, err := l.Verify(); err == nil {
					t.Error("it verifies")
				}
				if _, h, err := Append(dir, signer, leafOf(10)); err == nil {
					t.Errorf("an entry was added: %+v", h)
				}
			})
		}
	}
}

// Who has the key can begin anew, or show another ledger; an earlier checkpoint shows it.
func TestForked(t *testing.T) {
	signer := newSigner(t, "ledger.example")
	_, heads := filled(t, signer, t.TempDir(), 5)
	other := t.TempDir()
	for i := range 4 {
		if _, _, err := Append(other, signer, leafOf(100+i)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(other, signer.Key())
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range heads {
		err := l.Since(h.Signed)
		wants(t, fmt.Sprintf("since %d entries of another", i+1), err, CodeForked)
		if (i+1 == 4) != strings.Contains(err.Error(), "4 entries each, but not the same") {
			t.Errorf("since %d entries of another, which has 4: %v", i+1, err)
		}
	}
	stranger, err := Open(other, newSigner(t, "ledger.example").Key())
	if err != nil {
		t.Fatal(err)
	}
	_, err = stranger.Verify()
	wants(t, "another key", err, CodeKey)
	wants(t, "since a checkpoint of another key", stranger.Since(heads[0].Signed), CodeKey)
	_, _, err = Append(other, newSigner(t, "ledger.example"), leafOf(1))
	wants(t, "an entry with another key", err, CodeKey)
	_, _, err = Append(other, newSigner(t, "other.example"), leafOf(1))
	wants(t, "an entry with a key of another name", err, CodeKey)
	_, err = Open(other, "no key")
	wants(t, "no key", err, CodeKey)
}

func TestProofs(t *testing.T) {
	lanetest.SkipShort(t)
	signer := newSigner(t, "ledger.example")
	l, _ := filled(t, signer, t.TempDir(), 11)
	proof, err := l.Prove(leafOf(5))
	if err != nil {
		t.Fatal(err)
	}
	text := string(proof)
	other := audit.Inclusion{Leaf: leafOf(6), Index: 5, Checkpoint: text[strings.Index(text, "\n\n")+2:]}
	for name, bad := range map[string]string{
		"empty":         "",
		"another index": strings.Replace(text, "index 5", "index 6", 1),
		"too large":     strings.Replace(text, "index 5", "index 11", 1),
		"another entry": string(other.Bytes()),
		"spelling":      strings.Replace(text, "index 5", "index 05", 1),
		"more":          text + "\n",
	} {
		if _, _, err := l.CheckProof([]byte(bad)); err == nil {
			t.Errorf("%s: valid", name)
		}
	}
}

// An append that was killed before it replaced the checkpoint left the ledger as it was.
func TestKilled(t *testing.T) {
	signer, dir := newSigner(t, "ledger.example"), t.TempDir()
	l, heads := filled(t, signer, dir, 4)
	before, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Append(dir, signer, leafOf(50)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, checkpointFile), before, 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := l.Verify(); err != nil || h != heads[3] {
		t.Errorf("%+v, %v", h, err)
	}
	if _, _, err := Append(dir, signer, leafOf(4)); err != nil {
		t.Fatal(err)
	}
	if h, err := l.Verify(); err != nil || h.Size != 5 || l.Since(heads[1].Signed) != nil {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestTogether(t *testing.T) {
	lanetest.SkipShort(t)
	signer, dir := newSigner(t, "ledger.example"), t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 5 {
				if _, _, err := Append(dir, signer, leafOf(i*5+j)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	l, err := Open(dir, signer.Key())
	if err != nil {
		t.Fatal(err)
	}
	if h, err := l.Verify(); err != nil || h.Size != 40 {
		t.Errorf("%d entries, %v", h.Size, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRefused(t *testing.T) {
	signer := newSigner(t, "ledger.example")
	for _, leaf := range [][]byte{nil, make([]byte, 1<<16)} {
		_, _, err := Append(t.TempDir(), signer, leaf)
		wants(t, fmt.Sprintf("%d bytes", len(leaf)), err, CodeWrite)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Append(file, signer, leafOf(1))
	wants(t, "a file", err, CodeWrite)
	l, err := Open(t.TempDir(), signer.Key())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.Verify(); !errors.Is(err, fs.ErrNotExist) || Refuted(err) {
		t.Errorf("no ledger: %v", err)
	}
	wants(t, "no ledger", err, CodeRead)
}

// Cosignatures are made here as C2SP tlog-cosignature says.
func TestWitnessed(t *testing.T) {
	signer, dir := newSigner(t, "ledger.example"), t.TempDir()
	l, heads := filled(t, signer, dir, 3)
	one, key := cosign(t, "witness.example", heads[2].Signed, 1_700_000_000)
	two, key2 := cosign(t, "second.example", one, 1_600_000_000)
	h, err := l.open(two)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := l.Witnessed(h, []string{key, key2}); err != nil || at.Unix() != 1_600_000_000 {
		t.Errorf("%v, %v", at, err)
	}
	_, err = l.Witnessed(heads[2], []string{key})
	wants(t, "no cosignature", err, CodeWitness)
	_, other := cosign(t, "witness.example", heads[2].Signed, 1)
	_, err = l.Witnessed(h, []string{key, other})
	wants(t, "of another key", err, CodeWitness)
	moved, _, _ := strings.Cut(heads[1].Signed, "\n\n")
	_, after, _ := strings.Cut(two, "\n\n")
	_, err = l.Witnessed(Head{Signed: moved + "\n\n" + after}, []string{key})
	wants(t, "of another checkpoint", err, CodeWitness)
	for _, bad := range []string{"", "a+b", key[:len(key)-4] + "AAA=", strings.Replace(key, "witness", "Witness", 1), signer.Key()} {
		_, err := l.Witnessed(h, []string{bad})
		wants(t, bad, err, CodeKey)
	}
}

// cosign adds a witness's signature to a note, and returns its key.
func cosign(t *testing.T, name, signed string, seconds uint64) (string, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(signed, "\n\n")
	key := append([]byte{4}, public...)
	sum := sha256.Sum256(append([]byte(name+"\n"), key...))
	signature := ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s\n", seconds, text))
	raw := slices.Concat(sum[:4], binary.BigEndian.AppendUint64(nil, seconds), signature)
	line := fmt.Sprintf("— %s %s\n", name, base64.StdEncoding.EncodeToString(raw))
	if _, err := note.Open([]byte(signed+line), note.VerifierList()); err == nil {
		t.Fatal("a note without a known key is open")
	}
	return signed + line, fmt.Sprintf("%s+%08x+%s", name, binary.BigEndian.Uint32(sum[:4]), base64.StdEncoding.EncodeToString(key))
}

// BenchmarkProve proves and checks one of a thousand runs. It fails above 50 ms.
func BenchmarkProve(b *testing.B) {
	signer, dir := newSigner(b, "ledger.example"), b.TempDir()
	l, _ := filled(b, signer, dir, 1000)
	for b.Loop() {
		proof, err := l.Prove(leafOf(999))
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := l.CheckProof(proof); err != nil {
			b.Fatal(err)
		}
	}
	if each := b.Elapsed() / time.Duration(b.N); each > 50*time.Millisecond {
		b.Errorf("%v", each)
	}
}
