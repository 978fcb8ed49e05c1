// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/internal/kit/replace"
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
	return replace.File(name, data, 0o644)
}
