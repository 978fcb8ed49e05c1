// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/source/checkout"
)

// sourcedTime is how long reading a file that a text sources may take.
const sourcedTime = 10 * time.Second

// readCommitted returns a small file of the workspace, if it is as the commit that is checked out has it. Others, such
// as a developer's own .env, may have secrets, which would be shown in the log.
func (g *Gate) readCommitted(name string) (text string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), sourcedTime)
	defer cancel()
	workspace := workspaceOf(g.o)
	there, err := readSmall(workspace, name)
	if err != nil || checkout.HiddenPaths(g.o.Hide).Match(name) {
		return "", false
	}
	repository, err := checkout.OpenLocal(ctx, workspace)
	if err != nil {
		return "", false
	}
	defer repository.Close()
	below, err := repository.RelativePath(workspace)
	if err != nil {
		return "", false
	}
	head, err := repository.Commit(ctx, "HEAD")
	if err != nil {
		return "", false
	}
	dir, base := path.Split(path.Join(below, name))
	wanted := func(file string) bool { return file == base }
	contents, _, err := repository.ReadDir(ctx, head, strings.TrimSuffix(dir, "/"), wanted, checkout.Limits{})
	if err != nil || len(contents) != 1 || !bytes.Equal(contents[0].Bytes, there) {
		return "", false
	}
	return string(there), true
}

// readSmall reads a regular file below dir, of not more bytes than a file that is sourced.
func readSmall(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, parse.MaxSourcedBytes+1))
}
