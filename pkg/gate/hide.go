// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// visibleDir is the name prefix of directories with a copy of a workspace without its hidden paths.
const visibleDir = "fumehood-visible-"

// visibleWorkspace returns the directory that commands see as the workspace: a copy if paths are hidden.
func (g *Gate) visibleWorkspace(ctx context.Context) (dir string, err error) {
	if len(g.o.Hide) == 0 {
		return g.o.Workspace, nil
	}
	if belowTop(g.o.Workspace) != "" { // patterns are paths from the top
		return "", &proposal.StopError{Code: checkout.CodeHide,
			Message: "cannot hide paths of a workspace that is below the top of its repository",
			Hint:    "name the top with --workspace, and the directory with cwd in the proposals"}
	}
	lease.Sweep(os.TempDir(), visibleDir, (*lease.Dir).Remove) // of processes that were killed
	if g.visible, err = lease.Make(os.TempDir(), visibleDir); err != nil {
		return "", err
	}
	if err := os.Chmod(g.visible.Path, 0o711); err != nil { // for the commands' user
		return "", err
	}
	dir = filepath.Join(g.visible.Path, rand.Text()) // a name that other users cannot list
	return dir, checkout.HiddenPaths(g.o.Hide).CopyVisible(ctx, g.o.Workspace, dir)
}

// removeVisible removes the copy.
func (g *Gate) removeVisible() error {
	if g.visible == nil {
		return nil
	}
	return g.visible.Remove()
}

// checkHidden returns an error if a sandbox with o shows the workspace itself beside the copy.
func (g *Gate) checkHidden(o sandbox.Options) error {
	if len(g.o.Hide) == 0 {
		return nil
	}
	workspace, err := filepath.EvalSymlinks(g.o.Workspace)
	if err == nil {
		workspace, err = filepath.Abs(workspace)
	}
	if err != nil {
		return err
	}
	for _, b := range slices.Concat(o.Trees, o.Binds) {
		shown, err := filepath.EvalSymlinks(b.Source)
		if err != nil {
			return err
		}
		if isBelow(workspace, shown) || isBelow(shown, workspace) {
			return &proposal.StopError{Code: checkout.CodeHide,
				Message: fmt.Sprintf("commands would see the workspace with its hidden paths in %q", b.Target),
				Hint:    "move the workspace, or leave out the mount or directory of tools"}
		}
	}
	return nil
}

// isBelow reports whether path is dir or below it.
func isBelow(path, dir string) bool {
	below, err := filepath.Rel(dir, path)
	return err != nil || filepath.IsLocal(below)
}
