// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What is kept of each stream. The heads and tails of 200 commands' streams stay within
// fumehood's own memory budget.
const (
	keptHead = 64 << 10
	keptTail = 64 << 10
	maxFile  = 64 << 20 // of a stream, in its file
	pipeSize = 1 << 20
	readSize = 256 << 10
)

// An outputDrain reads one stream to its end, however long it is. It counts and hashes all bytes,
// keeps the first and the last, and writes them to a file up to a limit. A command waits
// for fumehood only as long as this loop takes.
type outputDrain struct {
	read  *os.File
	write *os.File // the sandbox's end; our copy is closed once it has been passed on
	done  chan struct{}

	total   *atomic.Int64 // shared by both streams
	maximum int64
	over    func()         // called once when total exceeds maximum
	live    func(p []byte) // receives everything as it comes; may be nil

	mu      sync.Mutex // of what follows, until the stream has ended
	midLine bool       // what was taken ends within a line
	sum     hash.Hash
	bytes   int64
	head    []byte
	tail    tailRing
	file    *os.File
	inFile  int64
	full    bool // a write failed: the file ends here
	path    string
}

func newDrain(path string, total *atomic.Int64, maximum int64, over func()) (*outputDrain, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// A larger pipe lets a flood through in fewer reads; without permission it stays at 64
	// KiB.
	_, _ = unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, pipeSize)
	return &outputDrain{
		read: r, write: w, done: make(chan struct{}), total: total, maximum: maximum, over: over,
		sum: sha256.New(), path: path,
	}, nil
}

var buffers = sync.Pool{New: func() any { return new([readSize]byte) }}

func (d *outputDrain) readLoop() {
	defer close(d.done)
	buf := buffers.Get().(*[readSize]byte)
	defer buffers.Put(buf)
	for {
		n, err := d.read.Read(buf[:])
		d.takeOutput(buf[:n])
		if err != nil {
			return
		}
	}
}

func (d *outputDrain) takeOutput(p []byte) {
	if len(p) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.midLine = p[len(p)-1] != '\n'
	if d.live != nil {
		d.live(p)
	}
	d.bytes += int64(len(p))
	d.sum.Write(p)
	d.storeOutput(p)
	if room := keptHead - len(d.head); room > 0 {
		n := min(room, len(p))
		d.head = append(d.head, p[:n]...)
		d.tail.write(p[n:])
	} else {
		d.tail.write(p)
	}
	if d.total.Add(int64(len(p))) > d.maximum && d.over != nil {
		d.over()
	}
}

// writeNote adds a line of fumehood's own to the stream, after the line that the command has begun.
func (d *outputDrain) writeNote(line string) {
	d.mu.Lock()
	begun := d.midLine
	d.mu.Unlock()
	if begun {
		line = "\n" + line
	}
	d.takeOutput([]byte(line + "\n"))
}

// storeOutput writes to the file up to its limit. If the file cannot be written, as on a full
// disk, it ends there; the count in the Result says how much it contains.
func (d *outputDrain) storeOutput(p []byte) {
	if d.path == "" || d.full || d.inFile >= maxFile {
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
	n, err := d.file.Write(p[:min(int64(len(p)), maxFile-d.inFile)])
	d.inFile += int64(n)
	d.full = err != nil
}

func (d *outputDrain) close() {
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
}

// finishStream waits for the stream's end. All writers are dead by now; if the end still does not
// come, the result is what was read until then.
func (d *outputDrain) finishStream(grace time.Duration) proposal.Stream {
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

func (d *outputDrain) closePipes() {
	_ = d.read.Close()
	_ = d.write.Close()
}

// A tailRing keeps the last keptTail bytes written to it.
type tailRing struct {
	buf  []byte
	next int // the index of the oldest byte once buf is full
}

func (r *tailRing) write(p []byte) {
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

func (r *tailRing) bytes() []byte {
	return append(append([]byte(nil), r.buf[r.next:]...), r.buf[:r.next]...)
}

// writeStdin writes a command's stdin. It is not an error if the command does not read it.
func writeStdin(w *os.File, text string) {
	_, _ = io.WriteString(w, text)
	_ = w.Close()
}
