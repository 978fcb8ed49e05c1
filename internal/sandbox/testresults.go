// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"time"

	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits on reading the files of test runners after one command.
const (
	maxResultFiles = 500
	maxResultFile  = 8 << 20  // bytes of one
	maxResultBytes = 32 << 20 // of all
	maxResultTime  = 3 * time.Second
)

// readTestResults reads the files among changes in which test runners may have written their results.
// Only regular files are read, and no link is followed. What cannot be read is as if it had not
// been written: the files only add to what a command printed.
func (s *instance) readTestResults(changes proposal.Changes) proposal.Stream {
	var found failure.Results
	start, files, left := time.Now(), 0, int64(maxResultBytes)
	if changes.Omitted > 0 {
		found.NoteOmission("the command changed too many files")
	}
	for _, c := range changes.Files {
		if c.Type != "file" || c.Kind == "removed" || c.Bytes == 0 || !failure.IsResults(c.Path) ||
			!isLocalPath(c.Path) {
			continue
		}
		if files++; c.Bytes > maxResultFile || c.Bytes > left || files > maxResultFiles ||
			time.Since(start) > maxResultTime {
			found.NoteOmission("the files are too many or too large")
			continue
		}
		left -= c.Bytes
		var content bytes.Buffer
		if _, err := s.init.copyFile(newSide, c.Path, c.Bytes, &content); err != nil {
			found.NoteOmission("a file cannot be read")
			continue
		}
		found.Add(c.Path, content.Bytes())
	}
	return found.Stream()
}
