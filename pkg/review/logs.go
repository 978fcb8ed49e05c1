// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// KeepLogs copies the audit log of each run to dir, which it makes, and names the copies in d
// relative to dir: 1.jsonl and so on, in the order of Runs.
func (d *Document) KeepLogs(dir string) error {
	err := os.MkdirAll(dir, 0o700)
	for i := range d.Runs {
		if err != nil {
			break
		}
		name := fmt.Sprintf("%d.jsonl", i+1)
		if err = copyNew(filepath.Join(dir, name), d.Runs[i].Log); err == nil {
			d.Runs[i].Log = name
		}
	}
	if err != nil {
		return &proposal.StopError{Code: "review.logs", Message: "cannot keep the audit logs of the review", Hint: "name a new directory on a file system with free space", Err: err}
	}
	return nil
}

// copyNew copies a file to a new one.
func copyNew(to, from string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}
