// SPDX-License-Identifier: Apache-2.0

// Package replace writes files whole or not at all.
package replace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File replaces what is at path by a file with the contents and the mode. After an error, or when the machine
// stops, path is what it was. A link is replaced, not followed.
func File(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
