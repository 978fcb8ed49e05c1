// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"io"
	"os"
)

// keepTorn is how many bytes of a torn tail a "resumed" entry holds.
const keepTorn = 64 << 10

// A resumed is the body of the first entry that Open writes.
type resumed struct {
	Offset int64  `json:"torn_offset"` // of the first torn byte
	Bytes  int64  `json:"torn_bytes"`  // 0: the log ended after a checkpoint
	Head   []byte `json:"torn_head"`   // the first torn bytes
}

// restore verifies the log in f and sets l to continue it after its last checkpoint.
func (l *Log) restore(f *os.File) (resumed, error) {
	v := newVerifier(f, Trust{Key: l.signer.key})
	sum, err := v.run()
	if err != nil {
		return resumed{}, brokenError(l.path, err)
	}
	torn := resumed{Offset: sum.SignedBytes, Bytes: sum.TornBytes}
	switch {
	case sum.State == Sealed:
		return torn, errSealed
	case sum.Checkpoint == "":
		return torn, brokenError(l.path, errors.New("it ends before its first checkpoint"))
	case sum.Origin != l.origin:
		return torn, brokenError(l.path, errors.New("it has another origin: "+sum.Origin))
	}
	if sum.State == Torn {
		if torn.Head, err = cutTail(f, sum); err != nil {
			return torn, writeError(l.path, err)
		}
		// The verifier has hashed the torn tail too; read only the rest.
		v = newVerifier(io.NewSectionReader(f, 0, sum.SignedBytes), Trust{Key: l.signer.key})
		if sum, err = v.run(); err != nil {
			return torn, brokenError(l.path, err)
		}
	}
	l.tree, l.size, l.digest, l.checkpoint = v.tree, sum.SignedBytes, v.digest, sum.Checkpoint
	return torn, nil
}

// cutTail removes the torn tail and returns its first bytes.
func cutTail(f *os.File, sum Summary) ([]byte, error) {
	head := make([]byte, min(sum.TornBytes, keepTorn))
	if _, err := f.ReadAt(head, sum.SignedBytes); err != nil {
		return nil, err
	}
	if err := f.Truncate(sum.SignedBytes); err != nil {
		return nil, err
	}
	return head, f.Sync()
}
