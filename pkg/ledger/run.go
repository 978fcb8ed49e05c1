// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
)

// AppendLog adds the entry of the log in a file: its last checkpoint, see Append. The log must be
// complete, so trust must name its key or one of its checkpoints. signingKey is the file with the
// ledger's private key.
func AppendLog(dir, file, signingKey string, trust audit.Trust) (n int64, h Head, err error) {
	signer, err := audit.ReadSigner(signingKey)
	if err != nil {
		return 0, h, err
	}
	s, err := sealed(file, trust)
	if err != nil {
		return 0, h, err
	}
	if !s.Complete() {
		return 0, h, stop(CodeLog, "the run's log is "+s.String(), "name the key or a checkpoint from the run's report", nil)
	}
	return Append(dir, signer, []byte(s.Checkpoint))
}

// ProveLog is Prove for the entry of the log in a file.
func (l *Ledger) ProveLog(file string) ([]byte, error) {
	s, err := sealed(file, audit.Trust{})
	if err != nil {
		return nil, err
	}
	return l.Prove([]byte(s.Checkpoint))
}

// CheckLog checks that the proof in a file is valid and of the log in another, and returns the
// entry's number. It reads nothing of the ledger.
func (l *Ledger) CheckLog(proofFile, file string) (int64, error) {
	proof, err := audit.ReadProof(proofFile)
	if err != nil {
		return 0, err
	}
	leaf, n, err := l.CheckProof(proof)
	if err != nil {
		return 0, err
	}
	s, err := sealed(file, audit.Trust{})
	if err == nil && !bytes.Equal(leaf, []byte(s.Checkpoint)) {
		err = stop(CodeProof, "the proof is of another run, or of another log of this run", "give the log that was appended", nil)
	}
	return n, err
}

// sealed verifies the log in a file, which must be sealed. Its key is trusted only if trust says
// so.
func sealed(file string, trust audit.Trust) (audit.Summary, error) {
	log, err := audit.OpenFile(file)
	if err != nil {
		return audit.Summary{}, err
	}
	defer log.Close()
	s, err := audit.Verify(log, trust)
	if err != nil {
		return s, stop(CodeLog, "the run's log does not verify", "run fumehood verify with it", err)
	}
	if s.State != audit.Sealed {
		return s, stop(CodeLog, "the run's log is not sealed: "+s.String(), "only finished runs are in a ledger", nil)
	}
	return s, nil
}

// CheckAll is Verify. If since is not "", the ledger must also contain the one that the
// checkpoint in this file is of; every one of witnesses must have cosigned. It returns one
// sentence for people.
func (l *Ledger) CheckAll(since string, witnesses []string) (string, error) {
	h, err := l.Verify()
	if err != nil {
		return "", err
	}
	if since != "" {
		old, err := readFile(since)
		if err != nil {
			return "", stop(CodeRead, fmt.Sprintf("cannot read the earlier checkpoint %q", since), "name a copy of the file checkpoint of this ledger", err)
		}
		if err := l.Since(string(old)); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf("complete: %d entries", h.Size)
	if len(witnesses) == 0 {
		return text, nil
	}
	oldest, err := l.Witnessed(h, witnesses)
	return text + ", cosigned since " + oldest.Format(time.RFC3339), err
}

// Refuted reports whether err says that something is not so, and not only that it could not be
// read or written.
func Refuted(err error) bool {
	for _, code := range []string{CodeKey, CodeBroken, CodeForked, CodeWitness, CodeMissing, CodeProof, CodeLog} {
		if isCode(err, code) {
			return true
		}
	}
	return false
}

// isNew reports whether there is no ledger in dir. One whose checkpoint is missing is not new: what
// it had would be overwritten.
func isNew(dir string) bool {
	for _, name := range []string{checkpointFile, "tile"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			return false
		}
	}
	return true
}
