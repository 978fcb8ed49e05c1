// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
)

// HintUnwritable goes with an error of ReplaceFile.
const HintUnwritable = "check that the directory exists, has space and is writable"

// ReplaceFile writes a file that has its name only when it is complete: no reader sees
// half of it, and a full disk destroys nothing. A link is followed. A pipe or a device is
// written to and not replaced.
func ReplaceFile(name string, data []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, data, 0)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".fumehood-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
