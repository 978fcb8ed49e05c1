// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"io"

	"github.com/fumehood/fumehood/pkg/audit"
)

// EntryOf verifies the audit log of a run and returns its entry: the last checkpoint. The log
// must be sealed, and its key trusted if trust names one or a checkpoint.
func EntryOf(log io.Reader, trust audit.Trust) ([]byte, error) {
	s, err := audit.Verify(log, trust)
	if err != nil {
		return nil, stop(CodeBroken, "the run's log does not verify", "run fumehood verify with it", err)
	}
	if s.State != audit.Sealed {
		return nil, stop(CodeBroken, "the run's log is not sealed: "+s.String(), "only finished runs are in a ledger", nil)
	}
	return []byte(s.Checkpoint), nil
}

// CheckRun checks that proof is valid and of this run's log, and returns the entry's number.
func (l *Ledger) CheckRun(proof []byte, log io.Reader) (int64, error) {
	leaf, n, err := l.CheckProof(proof)
	if err != nil {
		return 0, err
	}
	entry, err := EntryOf(log, audit.Trust{})
	if err == nil && !bytes.Equal(entry, leaf) {
		err = stop(CodeProof, "the proof is of another run, or of another log of this run", "give the log that was appended", nil)
	}
	return n, err
}
