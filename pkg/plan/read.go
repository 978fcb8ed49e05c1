// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"io"
	"os"
)

// ReadFile reads the plan at path, or all of stdin for "-", and names it for messages. It
// reads one byte more than a plan may have, so that Decode refuses what is too large and
// no more is ever held.
func ReadFile(path string, stdin io.Reader) (data []byte, name string, err error) {
	if path == "-" {
		data, err = io.ReadAll(io.LimitReader(stdin, MaxDocument+1))
		return data, "stdin", err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, path, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, MaxDocument+1))
	return data, path, err
}
