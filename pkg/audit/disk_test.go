// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// asNobody calls f with an ordinary user's rights even if the tests run as root: on Linux
// a thread's file access follows its fsuid, which also drops root's file capabilities.
func asNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if err := syscall.Setfsuid(65534); err != nil {
				panic(err)
			}
		}
		f()
	}()
	<-done
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	var err error
	asNobody(func() { _, err = Create(filepath.Join(dir, "log"), o) })
	wantStop(t, err, "audit.not-writable")
	if !errors.Is(err, syscall.EACCES) {
		t.Errorf("cause = %v", err)
	}
}

// faulty fails like a disk.
type faulty struct {
	file
	write, sync error
	part        int
}

func (f faulty) Write(p []byte) (int, error) {
	if f.write == nil {
		return f.file.Write(p)
	}
	n, err := f.file.Write(p[:f.part])
	return n, errors.Join(err, f.write)
}

func (f faulty) Sync() error { return errors.Join(f.file.Sync(), f.sync) }

func TestFaultyDisk(t *testing.T) {
	for _, test := range []struct {
		name, code string
		f          faulty
		state      State
	}{
		{"no space", "audit.full", faulty{write: syscall.ENOSPC}, Unsealed},
		{"no space after some bytes", "audit.full", faulty{write: syscall.ENOSPC, part: 50}, Torn},
		{"quota", "audit.full", faulty{write: syscall.EDQUOT}, Unsealed},
		{"input/output error", "audit.not-writable", faulty{write: syscall.EIO, part: 1}, Torn},
		{"short write", "audit.not-writable", faulty{write: io.ErrShortWrite, part: 7}, Torn},
		{"no space at fsync", "audit.full", faulty{sync: syscall.ENOSPC}, Unsealed},
		{"input/output error at fsync", "audit.not-writable", faulty{sync: syscall.EIO}, Unsealed},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := create(t)
			appendN(t, l, 2)
			known := l.Checkpoint()
			good := l.f
			test.f.file = good
			l.f = test.f
			n, err := l.Append("x", 1)
			wantStop(t, err, test.code)
			if n != -1 || l.Checkpoint() != known || l.Entries() != 2 {
				t.Errorf("a write that was not acknowledged counts: %d, %d", n, l.Entries())
			}
			l.f = good
			if _, again := l.Append("x", 1); again != err {
				t.Errorf("the log lives on: %v", again)
			}
			sum, err := Verify(bytes.NewReader(read(t, l.Path())), Trust{Key: l.Key(), Checkpoint: known})
			if err != nil || sum.State != test.state {
				t.Errorf("%+v, %v", sum, err)
			}
		})
	}
}

// slow holds back each sync until it may go on.
type slow struct {
	file
	sync chan error
}

func (s slow) Sync() error { return errors.Join(<-s.sync, s.file.Sync()) }

// An entry of Write is in the file before it is on disk. The next Append brings both to disk, or without one a sync in
// the background. One that fails ends the log.
func TestWrite(t *testing.T) {
	next := map[string]func(*Log) error{
		"Append": func(l *Log) error { _, err := l.Append("x", 2); return err },
		"Seal":   func(l *Log) error { _, err := l.Seal(); return err },
		"Close":  (*Log).Close,
	}
	for name, call := range next {
		for _, failure := range []error{nil, syscall.EIO} {
			for _, late := range []bool{false, true} {
				l := create(t)
				disk := slow{l.f, make(chan error)}
				l.f = disk
				if n, err := l.Write("x", 1); n != 0 || err != nil {
					t.Fatal(n, err)
				}
				sum, err := Verify(bytes.NewReader(read(t, l.Path())), Trust{Key: l.Key(), Checkpoint: l.Checkpoint()})
				if err != nil || sum.Entries != 1 || sum.State != Unsealed {
					t.Errorf("before the sync: %+v, %v", sum, err)
				}
				if late {
					disk.sync <- failure // which only a sync in the background takes
				}
				done := make(chan error)
				go func() { done <- call(l) }()
				if late && (failure != nil || name == "Close") {
					// it has nothing to bring to disk
				} else {
					select {
					case err := <-done:
						t.Errorf("%s did not wait for the disk: %v", name, err)
					case <-time.After(syncDelay / 2):
					}
					disk.sync <- failure
				}
				if err := <-done; (err != nil) != (failure != nil) && !(late && name == "Close") {
					t.Errorf("%s after a sync with %v: %v", name, failure, err)
				} else if err != nil {
					wantStop(t, err, "audit.not-writable")
				}
				select {
				case disk.sync <- nil:
					t.Errorf("%s: a second sync of what is on disk", name)
				case <-time.After(2 * syncDelay):
				}
			}
		}
	}
}

func TestCreateOnSpecialFiles(t *testing.T) {
	_, err := Create("/proc/self/fumehood.log", testOptions(t))
	wantStop(t, err, "audit.not-writable")
	_, err = Create("/dev/full", testOptions(t))
	wantStop(t, err, "audit.exists")
}

func TestReading(t *testing.T) {
	data := memoryLog(t, "k", "o", []any{strings.Repeat("x", 300_000), 1}, true)
	trust := Trust{Key: testSigner(t, "k").Key()}
	for name, r := range map[string]io.Reader{
		"one byte at a time": iotest.OneByteReader(bytes.NewReader(data)),
		"data with EOF":      iotest.DataErrReader(bytes.NewReader(data)),
	} {
		if sum, err := Verify(r, trust); err != nil || !sum.Complete() {
			t.Errorf("%s: %v, %v", name, sum, err)
		}
	}
	_, err := Verify(io.MultiReader(bytes.NewReader(data[:500]), iotest.ErrReader(syscall.EIO)), trust)
	wantVerify(t, err, codeRead, 3, -1)
}

// endless yields one byte forever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestEndlessLine(t *testing.T) {
	lanetest.SkipShort(t)
	data := memoryLog(t, "k", "o", []any{1}, false)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Verify(io.MultiReader(bytes.NewReader(data), endless('x')), Trust{})
	wantVerify(t, err, codeLineLength, 5, -1)
	_, err = Verify(endless('{'), Trust{})
	wantVerify(t, err, codeLineLength, 1, -1)
	_, err = Verify(io.MultiReader(bytes.NewReader(data), endless('\n')), Trust{})
	wantVerify(t, err, codeEntry, 5, 1)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 20*maxEntry {
		t.Errorf("%d bytes allocated", used)
	}
}

// TestLargestEntry appends an entry of the maximum size, and one a byte larger.
func TestLargestEntry(t *testing.T) {
	lanetest.SkipShort(t)
	overhead := len(leafOf("x", clock()(), []byte(`""`)))
	l := create(t)
	if _, err := l.Append("x", strings.Repeat("y", maxEntry-overhead)); err != nil {
		t.Fatal(err)
	}
	wantSummary(t, read(t, l.Path()), Trust{Key: l.Key()}, Summary{State: Unsealed, Origin: testOrigin, Key: l.Key(), KeyTrusted: true, Entries: 1})
	_, err := l.Append("x", strings.Repeat("y", maxEntry-overhead+1))
	wantStop(t, err, "audit.entry")
}

func TestSummaryString(t *testing.T) {
	for want, s := range map[string]Summary{
		"broken":                         {},
		"sealed and complete: 3 entries": {State: Sealed, KeyTrusted: true, Entries: 3},
		"consistent and sealed: 3 entries, signed by a key that is not vouched for":                                                            {State: Sealed, Entries: 3},
		"unsealed: 3 entries end with a valid checkpoint and no seal (its writer was killed or is still running, or the log was cut short)":    {State: Unsealed, Entries: 3},
		"unsealed: 3 entries verify up to byte 70; 9 unsigned bytes of a torn write follow, with 1 whole entries that were never acknowledged": {State: Torn, Entries: 3, SignedBytes: 70, TornBytes: 9, Unsigned: 1},
	} {
		if got := s.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
