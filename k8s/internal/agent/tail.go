// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/fumehood/fumehood/k8s/internal/logfile"
)

// settled is how long a log without a lock must not have changed to be one whose gate has ended: a
// gate locks its log after it has created it.
const settled = 5 * time.Second

// A tail reads a log to its end, waits for more, and ends when its gate has.
type tail struct {
	ctx context.Context
	f   *os.File
}

// Read implements io.Reader. The error is io.EOF when the gate has ended, and ctx's when that has.
func (t tail) Read(p []byte) (int, error) {
	for {
		goesOn, err := writing(t.f) // asked first: what was written before the end is read
		if err != nil {
			return 0, err
		}
		if n, err := t.f.Read(p); n > 0 || !errors.Is(err, io.EOF) || !goesOn {
			return n, err
		}
		select {
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		case <-time.After(every):
		}
	}
}

// writing reports whether the log's gate may write more.
func writing(f *os.File) (bool, error) {
	if locked, err := logfile.Locked(f); locked || err != nil {
		return locked, err
	}
	info, err := f.Stat()
	return err == nil && time.Since(info.ModTime()) < settled, err
}
