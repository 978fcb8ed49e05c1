// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// StateHome returns the directory that has the user's state, below "fumehood".
func StateHome() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return state, nil
	}
	dir, err := os.UserHomeDir()
	return filepath.Join(dir, ".local", "state"), err
}

// CheckRoot returns a *proposal.StopError if this process lacks the privileges to
// run commands.
func CheckRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &proposal.StopError{Code: "sandbox.not-root",
		Message: "cannot run commands: cgroups, mounts and namespaces need root",
		Hint:    "run fumehood as root or with sudo; fumehood check decides without it"}
}
