// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// signatureText is the length of the base64 of a key hash and a signature.
const signatureText = (4 + 64 + 2) / 3 * 4

// parseSignature reads the rest of a line after signaturePrefix: base64 in its
// canonical spelling, a newline and the line's end.
func parseSignature(rest []byte, keyHash uint32, signature *[64]byte) bool {
	text, ok := bytes.CutSuffix(rest, []byte(`\n"}`))
	if !ok || len(text) != signatureText {
		return false
	}
	var raw [signatureText]byte
	n, err := base64.StdEncoding.Strict().Decode(raw[:], text)
	if err != nil || n != 4+len(signature) || binary.BigEndian.Uint32(raw[:]) != keyHash {
		return false
	}
	copy(signature[:], raw[4:n])
	return true
}

// checkPending verifies all pending checkpoints through the last one's signature, which covers
// the lines of the others. Only if it is wrong does check look for the first wrong one.
func (v *verifier) checkPending() error {
	if n := len(v.pending); n == 0 || v.isValidSignature(v.pending[n-1]) {
		v.pending = v.pending[:0]
		return nil
	}
	return v.firstInvalid()
}

// firstInvalid returns an error for the first pending checkpoint whose signature is wrong.
func (v *verifier) firstInvalid() error {
	for _, p := range v.pending {
		if !v.isValidSignature(p) {
			return &VerifyError{
				Code: codeSignature, Line: p.line, Offset: p.offset, Entry: p.entry,
				Message: "signature is not valid: this checkpoint was changed, or it together with lines since the checkpoint before it",
			}
		}
	}
	v.pending = v.pending[:0]
	return nil
}

func (v *verifier) isValidSignature(p pending) bool { return v.key.Verify(p.text, p.signature[:]) }

// diagnoseLine explains why line is not the checkpoint that the preceding lines require.
func (v *verifier) diagnoseLine(line []byte, want checkpoint) error {
	signed, ok := cutCheckpointLine(line)
	if !ok {
		if v.owed {
			return v.errorAtLine(codeMissing, "entry %d is not followed by its checkpoint", v.tree.size-1)
		}
		return v.errorAtLine(codeCheckpoint, "line is not a checkpoint")
	}
	got, err := openCheckpoint(signed, v.key)
	if err != nil {
		return v.errorAtLine(codeSignature,
			"checkpoint fits neither the lines before it nor its signature: it was changed (%v)", err)
	}
	switch {
	case got.origin != want.origin && want.size > 0:
		return v.errorAtLine(codeCheckpoint, "checkpoint is of another log, with origin %s", got.origin)
	case got.size != want.size:
		return v.errorAtLine(codeCheckpoint,
			"checkpoint is for %d entries where one for %d belongs: lines were removed, repeated or moved", got.size, want.size)
	case got.sealed != want.sealed && got.bytes == want.bytes && got.digest == want.digest:
		return v.errorAtLine(codeMissing, "a seal is in the place of an entry's checkpoint")
	case !v.owed && v.sum.Lines > 1:
		return v.errorAtLine(codeCheckpoint, "checkpoint is repeated")
	}
	return v.changedError(got, want)
}

// changedError returns the error for a genuine checkpoint that does not fit the line
// before it. The checkpoint among the lines before that one vouches for all of them.
func (v *verifier) changedError(got, want checkpoint) error {
	code, message := codeChanged, "bytes up to here are not the ones that were signed"
	switch {
	case want.size == 0:
		code, message = codeHeader, "header is not the one that was signed"
	case got.root != want.root:
		message = "entry is not the one that was signed (or lines before it come from another log of this key)"
	}
	return &VerifyError{Code: code, Line: v.sum.Lines, Offset: v.sum.SignedBytes, Entry: want.size - 1,
		Message: message}
}

var errSpelling = errors.New("note is not spelled as a log spells it")

// openCheckpoint reads a signed note that holds one checkpoint and one signature, in
// their canonical spelling.
func openCheckpoint(signed string, key note.Verifier) (checkpoint, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(key))
	if err != nil {
		return checkpoint{}, err
	}
	if signed != n.Text+signaturePrefix(key.Name())+n.Sigs[0].Base64+"\n" {
		return checkpoint{}, errSpelling
	}
	var spare [64]byte
	if !parseSignature([]byte(n.Sigs[0].Base64+`\n"}`), key.KeyHash(), &spare) {
		return checkpoint{}, errSpelling
	}
	return parseCheckpoint(n.Text)
}

// determineEnd determines how the log ends.
func (v *verifier) determineEnd() (State, error) {
	if err := v.checkPending(); err != nil {
		return Broken, err
	}
	if v.owed || v.sum.Lines == 1 {
		v.sum.TornBytes += v.offset - v.sum.SignedBytes
	}
	if v.owed {
		v.sum.Unsigned = 1
	}
	if err := v.knownSeen(); err != nil {
		return Broken, err
	}
	if err := v.deliverEntry(true); err != nil {
		return Broken, err
	}
	switch {
	case v.sealed:
		return Sealed, nil
	case v.sum.TornBytes > 0 || v.newest == nil:
		return Torn, nil
	}
	return Unsealed, nil
}

// knownSeen checks that the log contained the trusted checkpoint.
func (v *verifier) knownSeen() error {
	if v.known == nil {
		return nil
	}
	text, _, _ := strings.Cut(v.trust.Checkpoint, "\n\n")
	point, err := parseCheckpoint(text + "\n")
	switch {
	case err != nil:
		return v.errorAtLine(codeForked, "the trusted checkpoint is malformed, so the log cannot hold it")
	case v.key != nil && point.origin != v.header.Origin || point.bytes < v.sum.SignedBytes:
	case point.size == v.sum.Entries && point.sealed:
		return v.errorAtLine(codeTruncated,
			"log has all %d entries and ends at byte %d, without the seal that was signed up to byte %d: it was cut short", point.size, v.sum.SignedBytes, point.bytes)
	case point.size > v.sum.Entries:
		return v.errorAtLine(codeTruncated,
			"log ends with %d entries, but a checkpoint was signed for %d at byte %d: it was cut short", v.sum.Entries, point.size, point.bytes)
	}
	return v.errorAtLine(codeForked,
		"log does not hold the trusted checkpoint for %d entries: it is another log or has another history", point.size)
}
