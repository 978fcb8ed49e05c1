// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"path/filepath"

	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// OpenDefault opens the directory with layers; if it is empty, this host's, next to what else is
// kept from run to run. Its error is a *proposal.StopError.
func OpenDefault(dir string) (*Store, error) {
	if dir == "" {
		cache, err := install.CacheDir()
		if err != nil {
			return nil, &proposal.StopError{Code: CodeStore, Message: "cannot find the directory for layers",
				Hint: "name it with --layers-dir", Err: err}
		}
		dir = filepath.Join(cache, "layers")
	}
	return Open(dir, 0)
}
