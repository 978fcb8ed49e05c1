// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"os"
	"path"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/internal/source/setup"
)

// sourcedTime is how long reading a file that a text sources may take.
const sourcedTime = 10 * time.Second

// readCommitted returns a small file of the workspace, if it is as the commit that is checked out has it. Others, such
// as a developer's own .env, may have secrets, which would be shown in the log.
func (g *Gate) readCommitted(name string) (text string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), sourcedTime)
	defer cancel()
	workspace := workspaceOf(g.o)
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return "", false
	}
	defer root.Close()
	text, ok = setup.FileReader(root.FS())(name)
	if !ok || checkout.HiddenPaths(g.o.Hide).Match(name) {
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
	return text, err == nil && len(contents) == 1 && string(contents[0].Bytes) == text
}
