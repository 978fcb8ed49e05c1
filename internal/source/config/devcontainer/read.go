// SPDX-License-Identifier: Apache-2.0

package devcontainer

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Read reads the file of rootfs, "devcontainer:FILE", or "devcontainer" for the one in trusted.
// The caller trusts FILE: it must not be a pull request's.
func Read(rootfs, trusted string) (d Config, err error) {
	file, named := strings.CutPrefix(rootfs, Prefix)
	if !named && trusted != "" {
		file, named = Find(trusted)
	}
	if !named {
		return d, &proposal.StopError{Code: "rootfs.devcontainer",
			Message: "cannot find a devcontainer.json that the maintainers wrote: the workspace may be a pull request's",
			Hint:    "name the file of the default branch: --rootfs devcontainer:/path/to/devcontainer.json"}
	}
	data, err := readRegular(file, MaxBytes)
	if err != nil {
		return d, &proposal.StopError{Code: "rootfs.devcontainer", Message: fmt.Sprintf("cannot read %q", file),
			Hint: "name a regular file of at most 256 KiB", Err: err}
	}
	return Decode(data)
}

func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(filepath.Clean(path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("not a regular file of at most %d bytes", limit)
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}
