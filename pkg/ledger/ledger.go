// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The codes of errors.
const (
	CodeKey     = "ledger.key"          // not a key, or not the ledger's
	CodeBroken  = "ledger.broken"       // a file is missing, changed, or not of this format
	CodeForked  = "ledger.forked"       // it does not contain an earlier one
	CodeWitness = "ledger.witness"      // a required cosignature is missing
	CodeMissing = "ledger.missing"      // it has no such entry
	CodeProof   = "ledger.proof"        // a proof is invalid
	CodeLog     = "ledger.log"          // a run's log is not complete and sealed
	CodeRead    = "ledger.not-readable" // there is no checkpoint
	CodeWrite   = "ledger.not-writable" // an entry cannot be added
)

const (
	checkpointFile = "checkpoint"
	hintRestore    = "restore the ledger from a copy; do not append to it"
	// maxFile is more than 256 entries can have.
	maxFile = 17 << 20
)

// A Head is what a ledger's checkpoint says.
type Head struct {
	Size   int64
	Root   tlog.Hash
	Signed string // the note, with its signatures
}

// A Ledger is read with the key that signs it.
type Ledger struct {
	dir string
	key note.Verifier
}

// Open returns the ledger in dir that key, a verifier key, signs. It reads nothing yet.
func Open(dir, key string) (*Ledger, error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return nil, stop(CodeKey, "the ledger's key is not a verifier key", "give what fumehood key public prints", err)
	}
	return &Ledger{dir, verifier}, nil
}

// Head reads and checks the checkpoint.
func (l *Ledger) Head() (Head, error) {
	data, err := readFile(filepath.Join(l.dir, checkpointFile))
	if err != nil {
		return Head{}, stop(CodeRead, "cannot read the ledger's checkpoint", "name the directory of a ledger", err)
	}
	return l.open(string(data))
}

// open reads a checkpoint that the key has signed.
func (l *Ledger) open(signed string) (h Head, err error) {
	n, err := note.Open([]byte(signed), note.VerifierList(l.key))
	if err != nil && !strings.HasPrefix(signed, l.key.Name()+"\n") {
		return h, stop(CodeKey, fmt.Sprintf("it is not a checkpoint of the ledger %q", l.key.Name()), "give the key and the checkpoint of one ledger", err)
	}
	if err != nil {
		return h, stop(CodeKey, "the checkpoint is not signed by the ledger's key", "give the key that signs this ledger", err)
	}
	if !isCanonical(n) {
		return h, stop(CodeBroken, "a signature of the checkpoint is not in the only spelling of base64", hintRestore, nil)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[0] != l.key.Name() || lines[3] != "" {
		return h, stop(CodeBroken, "the checkpoint is not one of this ledger", hintRestore, nil)
	}
	size, e1 := strconv.ParseInt(lines[1], 10, 64)
	root, e2 := tlog.ParseHash(lines[2])
	if e1 != nil || e2 != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return h, stop(CodeBroken, "the checkpoint is malformed", hintRestore, nil)
	}
	return Head{size, root, signed}, nil
}

// isCanonical reports whether the signatures of n have no other spelling that means the same.
func isCanonical(n *note.Note) bool {
	for _, s := range slices.Concat(n.Sigs, n.UnverifiedSigs) {
		raw, err := base64.StdEncoding.Strict().DecodeString(s.Base64)
		if err != nil || base64.StdEncoding.EncodeToString(raw) != s.Base64 {
			return false
		}
	}
	return true
}

// Verify checks everything: that the entries make the signed root, and that the tiles are
// those of the entries.
func (l *Ledger) Verify() (Head, error) {
	h, err := l.Head()
	if err != nil {
		return h, err
	}
	var hashes audit.Hashes
	err = l.entries(h.Size, hashes.Add)
	if err != nil {
		return h, err
	}
	root, err := tlog.TreeHash(h.Size, hashes)
	if err != nil || root != h.Root {
		return h, stop(CodeBroken, "the entries are not those that were signed", hintRestore, err)
	}
	return h, l.checkTiles(h.Size, hashes)
}

// Since checks that l contains the ledger that an earlier checkpoint, signed by the same
// key, is of.
func (l *Ledger) Since(signed string) error {
	old, err := l.open(signed)
	if err != nil {
		return err
	}
	now, err := l.Head()
	if err != nil {
		return err
	}
	forked := func(err error) error {
		message := fmt.Sprintf("the ledger of %d entries does not contain the earlier one of %d", now.Size, old.Size)
		if now.Size == old.Size {
			message = fmt.Sprintf("the ledger and the earlier one have %d entries each, but not the same", now.Size)
		}
		return stop(CodeForked, message, "ask who has the key; keep both checkpoints", err)
	}
	if old.Size > now.Size || old.Size == now.Size && old.Root != now.Root {
		return forked(nil)
	}
	if old.Size == now.Size || old.Size == 0 {
		return nil
	}
	p, err := tlog.ProveTree(now.Size, old.Size, l.hashes(now))
	if err != nil {
		return stop(CodeBroken, "the tiles are not those that were signed", hintRestore, err)
	}
	if err := tlog.CheckTree(p, now.Size, now.Root, old.Size, old.Root); err != nil {
		return forked(err)
	}
	return nil
}

// Prove returns a proof that leaf is an entry. It reads all entries before it.
func (l *Ledger) Prove(leaf []byte) ([]byte, error) {
	h, err := l.Head()
	if err != nil {
		return nil, err
	}
	at, err := l.find(h.Size, leaf)
	if err != nil {
		return nil, err
	}
	path, err := tlog.ProveRecord(h.Size, at, l.hashes(h))
	if err == nil {
		err = tlog.CheckRecord(path, h.Size, h.Root, at, tlog.RecordHash(leaf))
	}
	if err != nil {
		return nil, stop(CodeBroken, fmt.Sprintf("entry %d is not the one that was signed", at), hintRestore, err)
	}
	return audit.Inclusion{Leaf: leaf, Index: at, Path: path, Checkpoint: h.Signed}.Bytes(), nil
}

// find returns the number of the first entry that is leaf.
func (l *Ledger) find(size int64, leaf []byte) (int64, error) {
	at := int64(-1)
	err := l.entries(size, func(n int64, entry []byte) error {
		if bytes.Equal(entry, leaf) {
			at = n
			return io.EOF
		}
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if at < 0 {
		return 0, stop(CodeMissing, "the ledger has no such entry", "append the log: fumehood ledger append", nil)
	}
	return at, nil
}

// CheckProof checks a proof that Prove wrote, without the ledger, and returns the entry.
func (l *Ledger) CheckProof(proof []byte) (leaf []byte, n int64, err error) {
	p, err := audit.ParseInclusion(proof)
	if err != nil {
		return nil, 0, stop(CodeProof, "the proof is malformed", "give a file that fumehood ledger prove wrote", err)
	}
	h, err := l.open(p.Checkpoint)
	if err != nil {
		return nil, 0, err
	}
	if p.Index >= h.Size || tlog.CheckRecord(p.Path, h.Size, h.Root, p.Index, tlog.RecordHash(p.Leaf)) != nil {
		return nil, 0, stop(CodeProof, "the entry is not in the ledger that was signed", "ask for a new proof", nil)
	}
	return p.Leaf, p.Index, nil
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}

func isCode(err error, code string) bool {
	e, ok := errors.AsType[*proposal.StopError](err)
	return ok && e.Code == code
}

// readFile reads a regular file of bounded size.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}
