// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure a log. The zero Options lack an Origin and are refused.
type Options struct {
	// Origin is the log's identity, preferably unique to the log, for example
	// "fumehood/OWNER/REPO/RUN". See the package comment for its characters.
	Origin string
	// Signer signs the checkpoints; nil makes an ephemeral one with Origin as its
	// name. Its verifier key must then be kept elsewhere, for example in the report.
	Signer *Signer
	// Now is the clock of the time stamps; nil is time.Now.
	Now func() time.Time
}

// A Log is an open log. Its methods may be called from several goroutines.
//
// The first error makes it unusable: the error may have left unverified bytes on
// disk, so every later call returns that error again and writes nothing.
type Log struct {
	path   string
	origin string
	signer *Signer
	now    func() time.Time

	mu         sync.Mutex
	f          file
	dead       error
	tree       tree
	size       int64
	digest     hash.Hash // of all bytes written
	checkpoint string
	unsynced   bool          // there are entries of Write that no sync has begun for
	delayed    *time.Timer   // which begins it
	syncing    chan struct{} // closed when the sync in the background has ended; or nil
}

var (
	errClosed = &proposal.StopError{Code: "audit.closed", Message: "the audit log is closed",
		Hint: "append before Close"}
	errSealed = &proposal.StopError{Code: "audit.sealed", Message: "the audit log is sealed", Hint: "name a new file"}
)

// Create creates a new log with a signed checkpoint for no entries, and returns
// when it is on disk. It refuses a path that exists, including a dangling symlink.
func Create(path string, o Options) (*Log, error) {
	l, err := newLog(path, o)
	if err != nil {
		return nil, err
	}
	f, err := createFile(l.path)
	if err != nil {
		return nil, err
	}
	l.f = f
	if err := l.writeHeader(); err != nil {
		return nil, errors.Join(err, discardFile(l.path, f)) // nothing was acknowledged
	}
	return l, nil
}

func newLog(path string, o Options) (*Log, error) {
	if !validName(o.Origin) {
		return nil, &proposal.StopError{
			Code: "audit.origin", Message: fmt.Sprintf("invalid origin %q of an audit log", o.Origin),
			Hint: "use 1 to 200 of A-Z a-z 0-9 . _ ~ : / @ % -",
		}
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, writeError(path, err)
	}
	if o.Signer == nil {
		if o.Signer, err = ephemeralSigner(o.Origin); err != nil {
			return nil, err
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Log{path: full, origin: o.Origin, signer: o.Signer, now: o.Now, digest: sha256.New()}, nil
}

func (l *Log) headerLine() []byte {
	return append(header{Key: l.signer.key, Origin: l.origin, Schema: schema}.formatLine(), '\n')
}

// writeHeader writes the header and a checkpoint for no entries.
func (l *Log) writeHeader() error {
	if err := l.writeLines(l.headerLine(), l.tree, false, true); err != nil {
		return err
	}
	if err := syncDir(l.path); err != nil {
		return writeError(l.path, err)
	}
	return nil
}

// Path returns the absolute path of the log's file.
func (l *Log) Path() string { return l.path }

// Origin returns the log's identity.
func (l *Log) Origin() string { return l.origin }

// Key returns the verifier key of the log.
func (l *Log) Key() string { return l.signer.key }

// Entries returns how many entries were acknowledged.
func (l *Log) Entries() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tree.size
}

// Checkpoint returns the last acknowledged checkpoint, a signed note. A log that
// does not contain it is another log or was truncated.
func (l *Log) Checkpoint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.checkpoint
}

// Append adds one entry: v, as canonical JSON, under kind. When it returns without
// error the entry and a checkpoint over it are on disk, and the entry's number is
// returned. An action that must be recorded may happen only after that.
func (l *Log) Append(kind string, v any) (int64, error) { return l.addEntry(kind, v, true) }

// Write is Append for an entry on which no action depends: it returns when the entry is in
// the file, where it survives the end of this process. A crash of the host can undo that for
// the moment until the entry is on disk, and then the log ends before it: that takes one sync, and begins with the
// next Append or 10 ms later. That it cannot be brought to disk is an error of the next call. Later entries are on
// disk only with it.
func (l *Log) Write(kind string, v any) (int64, error) { return l.addEntry(kind, v, false) }

func (l *Log) addEntry(kind string, v any, durable bool) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if durable {
		l.awaitSync()
	}
	if l.dead != nil {
		return -1, l.dead
	}
	line, after, err := l.nextEntry(kind, v)
	if err == nil {
		err = l.writeLines(line, after, false, durable)
	}
	if l.dead = err; err != nil {
		return -1, err
	}
	return l.tree.size - 1, nil
}

// awaitSync waits for the sync in the background, which must not get the error that belongs
// to the caller's.
func (l *Log) awaitSync() {
	for l.syncing != nil {
		done := l.syncing
		l.mu.Unlock()
		<-done
		l.mu.Lock()
	}
}

// syncDelay is how long an entry of Write waits for an Append, whose sync brings both to disk: two syncs take twice
// the time of one.
const syncDelay = 10 * time.Millisecond

// syncLater brings to disk what was written, in the background, if no Append does so before.
func (l *Log) syncLater() {
	if l.unsynced {
		return
	}
	l.unsynced = true
	l.delayed = time.AfterFunc(syncDelay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.awaitSync()
		l.syncWritten()
	})
}

// syncWritten brings to disk what was written, if it is not there yet. Others can write meanwhile.
func (l *Log) syncWritten() {
	if !l.unsynced {
		return
	}
	done := make(chan struct{})
	l.unsynced, l.syncing = false, done
	l.mu.Unlock()
	err := l.f.Sync()
	l.mu.Lock()
	if l.syncing = nil; err != nil && l.dead == nil {
		l.dead = writeError(l.path, err)
	}
	close(done)
}

// nextEntry returns the line of a new entry and the tree that includes it.
func (l *Log) nextEntry(kind string, v any) ([]byte, tree, error) {
	body, err := encodeBody(v)
	if err != nil {
		return nil, tree{}, entryError("cannot write an entry as canonical JSON", err)
	}
	if !kinds.MatchString(kind) {
		return nil, tree{}, entryError(fmt.Sprintf("invalid kind of entry %q", kind), nil)
	}
	leaf := leafOf(kind, l.now(), body)
	if len(leaf) > maxEntry {
		return nil, tree{}, entryError(fmt.Sprintf("an entry of %d bytes is larger than %d", len(leaf), maxEntry), nil)
	}
	after := tree{size: l.tree.size, edges: slices.Clone(l.tree.edges)}
	after.addLeaf(tlog.RecordHash(leaf))
	return append(entryLine(l.tree.size, leaf), '\n'), after, nil
}

// Seal ends the log: its last checkpoint says that nothing follows. It returns that
// checkpoint. After Seal only Close and the reading methods may be called.
func (l *Log) Seal() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaitSync()
	if l.dead != nil {
		return "", l.dead
	}
	if l.dead = l.writeLines(nil, l.tree, true, true); l.dead != nil {
		return "", l.dead
	}
	l.dead = errSealed
	return l.checkpoint, nil
}

// Close closes the file, after all entries are on disk. An unsealed log stays unsealed.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaitSync()
	if l.dead == errClosed {
		return nil
	}
	before := l.dead
	for l.dead == nil && l.unsynced { // by a Write during a sync
		l.syncWritten()
	}
	var err error
	if before == nil {
		err = l.dead
	}
	l.dead = errClosed
	if lost := l.f.Close(); err == nil && lost != nil {
		return writeError(l.path, lost)
	}
	return err
}

// writeLines writes lines, followed by a checkpoint for after, in one write. It updates the state
// only when all of it has reached the disk or, if it need not be durable, the file.
func (l *Log) writeLines(lines []byte, after tree, sealed, durable bool) error {
	if err := checkUnchanged(l.path, l.f, l.size); err != nil {
		return err
	}
	all, signed, err := l.signLines(lines, after, sealed)
	if err != nil {
		return err
	}
	if _, err := l.f.Write(all); err != nil {
		return writeError(l.path, err)
	}
	if durable {
		if l.unsynced {
			l.delayed.Stop()
			l.unsynced = false
		}
		if err := l.f.Sync(); err != nil {
			return writeError(l.path, err)
		}
	} else {
		l.syncLater()
	}
	l.tree, l.size, l.checkpoint = after, l.size+int64(len(all)), signed
	return nil
}

// signLines returns lines followed by a checkpoint for after, and the checkpoint's note.
func (l *Log) signLines(lines []byte, after tree, sealed bool) (all []byte, signed string, err error) {
	l.digest.Write(lines)
	point := checkpoint{origin: l.origin, size: after.size, root: after.rootHash(), bytes: l.size + int64(len(lines)),
		sealed: sealed}
	l.digest.Sum(point.digest[:0])
	text, err := note.Sign(&note.Note{Text: point.signedText()}, l.signer.signer)
	if err != nil {
		return nil, "", keyError("cannot sign a checkpoint", err)
	}
	line := append(checkpointLine(string(text)), '\n')
	l.digest.Write(line)
	return append(lines, line...), string(text), nil
}

func entryError(message string, cause error) error {
	return &proposal.StopError{
		Code: "audit.entry", Message: message, Err: cause,
		Hint: "shorten the entry: it must be JSON of at most 8 MiB with integers within ±(2^53-1)",
	}
}
