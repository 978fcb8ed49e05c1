// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const proofFirstLine = "c2sp.org/tlog-proof@v1"

// maxProof is the maximum size of a proof in bytes.
const maxProof = 2 * maxLine

// ErrNoEntry means that a log has no such signed entry.
var ErrNoEntry = errors.New("the log has no such entry")

// Find verifies a log and returns the numbers of the signed entries that match
// accepts, in order. match sees bytes that are not yet verified, and must not keep
// them; the numbers are valid only after Find returned without error.
func Find(r io.Reader, trust Trust, match func(Entry) bool) ([]int64, Summary, error) {
	var found []int64
	sum, err := Scan(r, trust, func(e Entry) error {
		if !e.Unsigned && match(e) {
			found = append(found, e.N)
		}
		return nil
	})
	if err != nil {
		return nil, sum, err
	}
	return found, sum, nil
}

// Prove verifies a log and returns a C2SP tlog-proof that entry n is in it: text
// that holds the entry itself (as "extra"), its number, the inclusion proof and the
// log's last checkpoint. It needs 64 bytes of memory per entry of the log.
//
// If no checkpoint covers n, the error is ErrNoEntry.
func Prove(r io.Reader, trust Trust, n int64) ([]byte, error) {
	var hashes hashes
	var leaf []byte
	v := newVerifier(r, trust)
	v.each = func(e Entry) error {
		if e.Unsigned {
			return nil
		}
		if e.N == n {
			leaf = e.Leaf
		}
		return hashes.Add(e.N, e.Leaf)
	}
	sum, err := v.verifyLog()
	if err != nil {
		return nil, err
	}
	if leaf == nil {
		return nil, fmt.Errorf("cannot prove entry %d: %w (it has %d)", n, ErrNoEntry, sum.Entries)
	}
	path, err := tlog.ProveRecord(sum.Entries, n, hashes)
	if err != nil {
		return nil, fmt.Errorf("cannot prove entry %d: %v", n, err)
	}
	return inclusion{leaf, n, path, sum.Checkpoint}.formatProof(), nil
}

// hashes are those of a Merkle tree, in tlog's order: 64 bytes for each leaf.
type hashes []tlog.Hash

// Add adds leaf number n. Leaves are added from 0 on, without gaps.
func (s *hashes) Add(n int64, leaf []byte) error {
	more, err := tlog.StoredHashes(n, leaf, *s)
	*s = append(*s, more...)
	return err
}

// ReadHashes implements tlog.HashReader.
func (s hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(s)) {
			return nil, fmt.Errorf("no hash %d", at)
		}
		out[i] = s[at]
	}
	return out, nil
}

// An inclusion is a C2SP tlog-proof: leaf is entry index of the log that checkpoint, a signed
// note, is of. Whether that is so, its user checks.
type inclusion struct {
	leaf       []byte
	index      int64
	path       tlog.RecordProof
	checkpoint string
}

// formatProof returns the text of p.
func (p inclusion) formatProof() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nextra %s\nindex %d\n", proofFirstLine, base64.StdEncoding.EncodeToString(p.leaf), p.index)
	for _, h := range p.path {
		fmt.Fprintf(&b, "%s\n", h)
	}
	fmt.Fprintf(&b, "\n%s", p.checkpoint)
	return b.Bytes()
}

// A Proved is the statement of a valid proof, signed by the holder of the key: a log
// with this origin and at least Size entries, sealed if Sealed is set, contains Entry.
type Proved struct {
	Entry      Entry
	Origin     string
	Size       int64
	Sealed     bool
	Checkpoint string
}

// String is one sentence, and the entry on a separate line, as it was logged.
func (p Proved) String() string {
	end := "not sealed"
	if p.Sealed {
		end = "sealed"
	}
	return fmt.Sprintf("valid proof: entry %d is in the log %q of %d entries, %s\n%s", p.Entry.N, p.Origin, p.Size, end,
		p.Entry.Leaf)
}

// MarshalJSON writes what the proof shows; size counts the entries that the log had at
// least.
func (p Proved) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		N      int64           `json:"n"`
		Origin string          `json:"origin"`
		Size   int64           `json:"size"`
		Sealed bool            `json:"sealed"`
		Entry  json.RawMessage `json:"entry"`
	}{p.Entry.N, p.Origin, p.Size, p.Sealed, p.Entry.Leaf})
}

// ReadProof reads the proof in the file at path: one byte more than a proof may have, so
// that CheckProof refuses what is too large. Its error is a *proposal.StopError.
func ReadProof(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxProof+1)); err == nil {
			return data, nil
		}
	}
	return nil, &proposal.StopError{Code: "audit.not-readable", Message: fmt.Sprintf("cannot read proof %q", path),
		Hint: "name a file that fumehood export --proof wrote", Err: err}
}

// CheckProof checks a proof that Prove wrote against trust, whose Key must be given. A
// Checkpoint must be the proof's. It needs no log.
func CheckProof(proof []byte, trust Trust) (Proved, error) {
	verifier, err := parseKey(trust.Key)
	if err != nil {
		return Proved{}, err
	}
	p, err := parseInclusion(proof)
	if err != nil {
		return Proved{}, err
	}
	point, err := openCheckpoint(p.checkpoint, verifier)
	if err != nil {
		return Proved{}, fmt.Errorf("invalid proof: checkpoint: %v", err)
	}
	if p.index >= point.size {
		return Proved{}, fmt.Errorf("invalid proof: entry %d in a log of %d", p.index, point.size)
	}
	if err := tlog.CheckRecord(p.path, point.size, point.root, p.index, tlog.RecordHash(p.leaf)); err != nil {
		return Proved{}, fmt.Errorf("invalid proof: entry %d is not in the log that was signed", p.index)
	}
	entry, err := parseLeaf(p.leaf)
	if err != nil {
		return Proved{}, fmt.Errorf("invalid proof: %v", err)
	}
	if trust.Checkpoint != "" && p.checkpoint != trust.signedNote() {
		return Proved{}, errors.New("invalid proof: it is for another checkpoint")
	}
	entry.N = p.index
	return Proved{Entry: entry, Origin: point.origin, Size: point.size, Sealed: point.sealed, Checkpoint: p.checkpoint},
		nil
}

// parseInclusion reads exactly what bytes writes.
func parseInclusion(proof []byte) (p inclusion, err error) {
	malformed := errors.New("invalid proof: malformed")
	if len(proof) > maxProof {
		return p, malformed
	}
	head, signed, ok := strings.Cut(string(proof), "\n\n")
	rows := strings.Split(head, "\n")
	if !ok || len(rows) < 3 || len(rows) > 3+64 || rows[0] != proofFirstLine {
		return p, malformed
	}
	var e1, e2 error
	p.leaf, e1 = base64.StdEncoding.DecodeString(strings.TrimPrefix(rows[1], "extra "))
	p.index, e2 = strconv.ParseInt(strings.TrimPrefix(rows[2], "index "), 10, 64)
	if e1 != nil || e2 != nil || p.index < 0 {
		return p, malformed
	}
	for _, row := range rows[3:] {
		h, err := tlog.ParseHash(row)
		if err != nil {
			return p, malformed
		}
		p.path = append(p.path, h)
	}
	p.checkpoint = signed
	if !bytes.Equal(p.formatProof(), proof) {
		return p, malformed
	}
	return p, nil
}
