// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Verify reads a whole log and reports how it ends, or with a *VerifyError what
// is wrong first. It needs memory for one line, not for the log.
//
// A nil error alone does not mean complete: see Summary.State.
func Verify(r io.Reader, trust Trust) (Summary, error) { return Scan(r, trust, nil) }

// Scan is Verify, and passes each entry to each, including a torn unsigned one.
// The entries are trustworthy only after Scan returned without error. An error of
// each ends Scan and is returned. The slices in an Entry belong to each.
func Scan(r io.Reader, trust Trust, each func(Entry) error) (Summary, error) {
	v := newVerifier(r, trust)
	v.each = each
	return v.verifyLog()
}

// Every everyNth signature is checked while reading; see "Why" in the package comment.
const everyNth = 64

// A verifier is the state of one pass over a log.
type verifier struct {
	in    lines
	trust Trust
	each  func(Entry) error

	header  header
	key     note.Verifier
	tree    tree
	digest  hash.Hash // of all lines before the current one
	offset  int64     // of the current line
	scratch []byte
	owed    bool  // the previous line was an entry
	last    Entry // that entry
	pending []pending
	known   []byte // the line of Trust.Checkpoint, until it was seen
	newest  []byte // the line of the last checkpoint
	sealed  bool
	subject int64 // number of the entry that the current line concerns, or -1
	sum     Summary
}

// pending is a checkpoint whose text is correct and whose signature was not checked.
type pending struct {
	line, offset, entry int64
	text                []byte
	signature           [64]byte
}

func newVerifier(r io.Reader, trust Trust) *verifier {
	v := &verifier{in: lines{r: bufio.NewReaderSize(r, 64<<10)}, trust: trust, digest: sha256.New(), subject: -1}
	if trust.Checkpoint != "" {
		v.known = checkpointLine(trust.signedNote())
	}
	return v
}

func (v *verifier) verifyLog() (Summary, error) {
	cosigned, err := v.readCosigned()
	if err != nil {
		return v.sum, err
	}
	state, err := v.walkLines()
	v.sum.Checkpoint, _ = cutCheckpointLine(v.newest)
	if err != nil {
		// A signature not yet checked may show that an earlier line was wrong.
		if earlier := v.firstInvalid(); earlier != nil {
			err = earlier
		}
		return v.sum, err
	}
	v.sum.State, v.sum.KeyTrusted, v.sum.Cosigned = state, v.trust != Trust{}, cosigned
	return v.sum, nil
}

// readCosigned replaces Trust.Cosigned by the checkpoint in it, which the log must then contain.
func (v *verifier) readCosigned() (Cosignature, error) {
	if v.trust.Cosigned == "" {
		return Cosignature{}, nil
	}
	checkpoint, by, err := openCosigned(v.trust.Cosigned, v.trust.Key)
	if err != nil {
		return by, &VerifyError{Code: codeCosigned, Entry: -1, Message: err.Error()}
	}
	v.trust = Trust{Checkpoint: checkpoint}
	v.known = checkpointLine(v.trust.signedNote())
	return by, nil
}

func (v *verifier) walkLines() (State, error) {
	for {
		v.subject = -1
		line, err := v.in.nextLine()
		switch {
		case err == io.EOF:
			return v.determineEnd()
		case errors.Is(err, errLineTooLong):
			return Broken, v.errorAtLine(codeLineLength, "line is longer than %d bytes", maxLine)
		case err != nil:
			return Broken, v.errorAtLine(codeRead, "cannot read: %v", err)
		}
		if v.sealed {
			return Broken, v.errorAtLine(codeAfterSeal, "bytes follow the seal")
		}
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if !whole {
			v.sum.TornBytes += int64(len(line))
			return v.determineEnd()
		}
		if err := v.readLine(text); err != nil {
			return Broken, err
		}
		v.digest.Write(line)
		v.offset += int64(len(line))
		v.sum.Lines++
	}
}

// errorAtLine returns an error at the current line.
func (v *verifier) errorAtLine(code, format string, args ...any) error {
	return &VerifyError{Code: code, Line: v.sum.Lines + 1, Entry: v.subject, Offset: v.offset,
		Message: fmt.Sprintf(format, args...)}
}

func (v *verifier) readLine(line []byte) error {
	switch {
	case v.sum.Lines == 0:
		return v.readHeader(line)
	case v.owed:
		v.subject = v.tree.size - 1
		return v.readCheckpoint(line, false)
	case v.sum.Lines == 1:
		return v.readCheckpoint(line, false)
	case bytes.HasPrefix(line, []byte(`{"checkpoint":`)):
		return v.readCheckpoint(line, true)
	}
	v.subject = v.tree.size
	return v.readEntry(line)
}

func (v *verifier) readHeader(line []byte) error {
	h, key, err := parseHeader(line)
	if err != nil {
		return v.errorAtLine(codeHeader, "%v", err)
	}
	if v.trust.Key != "" && v.trust.Key != h.Key {
		return v.errorAtLine(codeKey, "log is signed by %s, trusted is %q", h.Key, v.trust.Key)
	}
	v.header, v.key = h, key
	v.sum.Key, v.sum.Origin, v.sum.KeyTrusted = h.Key, h.Origin, v.trust.Key != ""
	return nil
}

func (v *verifier) readEntry(line []byte) error {
	leaf, n, err := parseEntryLine(line)
	if err != nil {
		return v.errorAtLine(codeEntry, "%v", err)
	}
	c := canonicaler{in: leaf}
	if v.scratch, err = c.writeAll(v.scratch[:0]); err != nil {
		return v.errorAtLine(codeEntry, "in the entry: %v", err)
	}
	if !bytes.Equal(v.scratch, leaf) {
		return v.errorAtLine(codeEntry, "entry is not canonical JSON")
	}
	e, err := parseLeaf(leaf)
	if err != nil {
		return v.errorAtLine(codeEntry, "%v", err)
	}
	if n != v.tree.size {
		return v.errorAtLine(codeNumber, "line holds entry %d where entry %d belongs", n, v.tree.size)
	}
	v.tree.addLeaf(tlog.RecordHash(leaf))
	v.owed = true
	if v.each != nil {
		e.N, e.Leaf = n, bytes.Clone(leaf)
		e.Body = e.Leaf[len(`{"body":`) : len(`{"body":`)+len(e.Body)]
		v.last = e
	}
	return nil
}

// readCheckpoint compares a line with the only valid text for it; the signature is
// left to check.
func (v *verifier) readCheckpoint(line []byte, sealed bool) error {
	point := v.expectedCheckpoint(sealed)
	text := point.signedText()
	want := checkpointLine(text + signaturePrefix(v.key.Name()))
	want = want[:len(want)-len(`"}`)]
	rest, ok := bytes.CutPrefix(line, want)
	if !ok {
		return v.diagnoseLine(line, point)
	}
	p := pending{line: v.sum.Lines + 1, offset: v.offset, entry: v.subject, text: []byte(text)}
	if !parseSignature(rest, v.key.KeyHash(), &p.signature) {
		return v.errorAtLine(codeSignature, "checkpoint's signature is malformed or of another key")
	}
	v.pending = append(v.pending, p)
	if len(v.pending) >= everyNth || sealed {
		if err := v.checkPending(); err != nil {
			return err
		}
	}
	return v.acceptLine(line, sealed)
}

func (v *verifier) expectedCheckpoint(sealed bool) checkpoint {
	point := checkpoint{origin: v.header.Origin, size: v.tree.size, root: v.tree.rootHash(), bytes: v.offset,
		sealed: sealed}
	v.digest.Sum(point.digest[:0])
	return point
}

// acceptLine records that everything up to and including line is valid.
func (v *verifier) acceptLine(line []byte, sealed bool) error {
	v.sum.Entries, v.sum.SignedBytes = v.tree.size, v.offset+int64(len(line))+1
	v.newest = append(v.newest[:0], line...)
	v.sealed = sealed
	if v.known != nil && bytes.Equal(v.known, line) {
		v.known = nil
	}
	return v.deliverEntry(false)
}

// deliverEntry passes on the entry of the previous line, if it was one.
func (v *verifier) deliverEntry(unsigned bool) error {
	owed := v.owed
	v.owed = false
	if !owed || v.each == nil {
		return nil
	}
	v.last.Unsigned = unsigned
	return v.each(v.last)
}
