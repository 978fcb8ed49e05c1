// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func drained(t testing.TB, text []byte, path string, maximum int64, over func()) proposal.Stream {
	t.Helper()
	var total atomic.Int64
	d, err := newDrain(path, &total, maximum, over)
	if err != nil {
		t.Fatal(err)
	}
	go d.readLoop()
	if _, err := d.write.Write(text); err != nil {
		t.Fatal(err)
	}
	d.write.Close()
	return d.finishStream(time.Minute)
}

// Whatever the length, all bytes are counted and hashed, and Head and Tail are the
// first and last bytes without overlap.
func TestDrain(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, keptHead - 1, keptHead, keptHead + 1, keptHead + keptTail, keptHead + keptTail + 1, 5*keptTail + 77} {
		text := make([]byte, size)
		random.Read(text)
		s := drained(t, text, "", 1<<40, nil)
		sum := sha256.Sum256(text)
		if s.Bytes != int64(size) || s.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%d bytes: counted %d, digest %s", size, s.Bytes, s.SHA256)
		}
		if s.Truncated != (size > keptHead+keptTail) {
			t.Errorf("%d bytes: truncated %t", size, s.Truncated)
		}
		if !bytes.HasPrefix(text, s.Head) || !bytes.HasSuffix(text, s.Tail) {
			t.Errorf("%d bytes: head or tail is not the text's", size)
		}
		if want := min(size, keptHead+keptTail); len(s.Head)+len(s.Tail) != want {
			t.Errorf("%d bytes: kept %d, want %d", size, len(s.Head)+len(s.Tail), want)
		}
	}
}

func TestDrainFileCap(t *testing.T) {
	lanetest.SkipShort(t)
	path := filepath.Join(t.TempDir(), "x.stdout")
	text := bytes.Repeat([]byte("0123456789abcdef"), (maxFile+readSize)/16)
	s := drained(t, text, path, 1<<40, nil)
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != maxFile || s.FileBytes != maxFile || !bytes.Equal(got, text[:maxFile]) {
		t.Errorf("file has %d bytes, the stream says %d, want the first %d", len(got), s.FileBytes, maxFile)
	}
	if s.Bytes != int64(len(text)) {
		t.Errorf("counted %d, want %d", s.Bytes, len(text))
	}
}

func TestDrainNeverOverwrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.stdout")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := drained(t, []byte("other"), path, 1<<40, nil)
	if got, _ := os.ReadFile(path); string(got) != "mine" || s.File != "" {
		t.Errorf("file holds %q and the stream names %q", got, s.File)
	}
}

func TestDrainOver(t *testing.T) {
	var calls atomic.Int64
	drained(t, make([]byte, 1000), "", 999, func() { calls.Add(1) })
	if calls.Load() == 0 {
		t.Error("the limit was passed in silence")
	}
	drained(t, make([]byte, 1000), "", 1000, func() { t.Error("the limit was not passed") })
}

// Output flood: budget ≥ 500 MB/s, memory bounded.
func BenchmarkDrain(b *testing.B) {
	chunk := make([]byte, 1<<20)
	var total atomic.Int64
	d, err := newDrain(filepath.Join(b.TempDir(), "x.stdout"), &total, 1<<60, nil)
	if err != nil {
		b.Fatal(err)
	}
	go d.readLoop()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		if _, err := d.write.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	d.write.Close()
	d.finishStream(time.Minute)
	b.ReportMetric((float64(after.HeapSys)-float64(before.HeapSys))/1e6, "MB-grown")
}
