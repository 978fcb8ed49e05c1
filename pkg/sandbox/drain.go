// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What is kept of each stream. The two halves of 200 commands' streams stay below
// fumehood's own memory budget.
const (
	keptHead = 64 << 10
	keptTail = 64 << 10
	fileMost = 64 << 20 // of a stream, in its file
	pipeSize = 1 << 20
	readSize = 256 << 10
)

// A drain reads one stream to its end, however long it is: it counts and hashes
// all bytes, keeps the first and the last, and writes them to a file up to a cap.
// A command never waits for us but for the speed of this loop.
type drain struct {
	read  *os.File
	write *os.File // the sandbox's end; ours is closed once it has been handed over
	done  chan struct{}

	total *atomic.Int64 // shared by both streams
	most  int64
	over  func() // called once when total passes most

	sum    hash.Hash
	bytes  int64
	head   []byte
	tail   ring
	file   *os.File
	inFile int64
	full   bool // a write failed: the file ends here
	path   string
}

func newDrain(path string, total *atomic.Int64, most int64, over func()) (*drain, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// A larger pipe lets a flood through in fewer turns; without the right it stays 64 KiB.
	_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeSize)
	return &drain{
		read: r, write: w, done: make(chan struct{}), total: total, most: most, over: over,
		sum: sha256.New(), path: path,
	}, nil
}

func (d *drain) run() {
	defer close(d.done)
	buf := make([]byte, readSize)
	for {
		n, err := d.read.Read(buf)
		d.take(buf[:n])
		if err != nil {
			return
		}
	}
}

func (d *drain) take(p []byte) {
	if len(p) == 0 {
		return
	}
	d.bytes += int64(len(p))
	d.sum.Write(p)
	d.store(p)
	if room := keptHead - len(d.head); room > 0 {
		n := min(room, len(p))
		d.head = append(d.head, p[:n]...)
		d.tail.write(p[n:])
	} else {
		d.tail.write(p)
	}
	if d.total.Add(int64(len(p))) > d.most && d.over != nil {
		d.over()
	}
}

// store writes to the file up to its cap. A file that cannot be written, as on a
// full disk, ends there; the count in the Result says how much it has.
func (d *drain) store(p []byte) {
	if d.path == "" || d.full || d.inFile >= fileMost {
		return
	}
	if d.file == nil {
		f, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			d.path, d.full = "", true
			return
		}
		d.file = f
	}
	n, err := d.file.Write(p[:min(int64(len(p)), fileMost-d.inFile)])
	d.inFile += int64(n)
	d.full = err != nil
}

func (d *drain) close() {
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
}

// finish waits for the stream's end. All writers are dead by now; if an end does
// not come all the same, what was read until then stands.
func (d *drain) finish(grace time.Duration) proposal.Stream {
	_ = d.read.SetReadDeadline(time.Now().Add(grace))
	<-d.done
	_ = d.read.Close()
	d.close()
	s := proposal.Stream{
		Bytes: d.bytes, SHA256: hex.EncodeToString(d.sum.Sum(nil)),
		Head: d.head, Tail: d.tail.bytes(),
	}
	s.Truncated = s.Bytes > int64(len(s.Head)+len(s.Tail))
	if d.path != "" && d.bytes > 0 {
		s.File, s.FileBytes = d.path, d.inFile
	}
	return s
}

func (d *drain) abandon() {
	_ = d.read.Close()
	_ = d.write.Close()
}

// A ring keeps the last keptTail bytes written to it.
type ring struct {
	buf  []byte
	next int // where the oldest byte is once buf is full
}

func (r *ring) write(p []byte) {
	if len(p) >= keptTail {
		r.buf = append(r.buf[:0], p[len(p)-keptTail:]...)
		r.next = 0
		return
	}
	if room := keptTail - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % keptTail
		p = p[n:]
	}
}

func (r *ring) bytes() []byte {
	return append(append([]byte(nil), r.buf[r.next:]...), r.buf[:r.next]...)
}

// feed gives a command its stdin. A command that does not read it is no error.
func feed(w *os.File, text string) {
	_, _ = io.WriteString(w, text)
	_ = w.Close()
}
