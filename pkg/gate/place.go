// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A place holds the paths for the files of one run.
type place struct{ artifacts, audit string }

func runID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// newPlace creates the artifacts directory. It must be new, so that another run's files
// are never taken for this one's.
func newPlace(o Options, id string) (place, error) {
	p := place{o.Artifacts, o.AuditFile}
	if p.artifacts == "" {
		state, err := process.StateHome()
		if err != nil {
			return p, placeError("fumehood/"+id, err)
		}
		p.artifacts = filepath.Join(state, "fumehood", id)
	}
	if err := os.MkdirAll(filepath.Dir(p.artifacts), 0o700); err != nil {
		return p, placeError(p.artifacts, err)
	}
	if err := os.Mkdir(p.artifacts, 0o700); err != nil {
		return p, placeError(p.artifacts, err)
	}
	if p.audit == "" {
		p.audit = filepath.Join(p.artifacts, "audit.jsonl")
	}
	return p, nil
}

func placeError(dir string, err error) error {
	return &proposal.StopError{Code: "artifacts.not-writable",
		Message: fmt.Sprintf("cannot make the directory %q", dir),
		Hint:    "name a new directory: --artifacts, or Options.Artifacts", Err: err}
}
