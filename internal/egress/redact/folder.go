// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"os"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// unread is the name prefix of directories for output that was not searched yet.
const unread = "fumehood-unread-"

// CreateRawDir creates the directory for the sandbox's files, which no other user may enter, and
// removes the directories of runs that were killed.
func (u *Redactor) CreateRawDir() (string, error) {
	if u.raw != nil {
		return u.raw.Path, nil
	}
	lease.Sweep(os.TempDir(), unread, (*lease.Dir).Remove)
	d, err := lease.Make(os.TempDir(), unread)
	if err != nil {
		return "", &proposal.StopError{Code: "output.unreadable",
			Message: "cannot make a directory for the output of commands",
			Hint:    "free space in the directory for temporary files (TMPDIR)", Err: err}
	}
	u.raw = d
	return d.Path, nil
}

// Close removes files that were not copied.
func (u *Redactor) Close() error {
	if u == nil || u.raw == nil {
		return nil
	}
	return u.raw.Remove()
}
