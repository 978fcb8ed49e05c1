// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/peer"
)

// dialSession connects to the session in the directory at path.
func dialSession(ctx context.Context, path string) (net.Conn, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), socketName))
	if err != nil {
		return nil, err
	}
	if err := peer.CheckSameUser(c.(*net.UnixConn)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func isOwnedByUser(info fs.FileInfo) bool {
	st, known := info.Sys().(*syscall.Stat_t)
	return known && int(st.Uid) == os.Geteuid()
}
