// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// findUnmet returns the toolchains that are older than the workspace asks for. In a run for a pull
// request, what its base asks for is read from the base's commit, whose id the job gave, or that
// commands are compared with; if that cannot be read, nothing is known of it. Without a base there
// is no other side, and the workspace's own files count.
func (g *Gate) findUnmet(ctx context.Context) []proposal.Unmet {
	dirs := []string{"."}
	if cwd := g.o.Subject.Cwd; cwd != "" && cwd != "." && fs.ValidPath(cwd) {
		dirs = append(dirs, cwd)
	}
	root, err := os.OpenRoot(g.o.Workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	head := setup.ReadRequirements(setup.FileReader(root.FS()), dirs...)
	unmet := setup.FindUnmet(head, head, g.tools)
	base := g.o.Subject.BaseSHA
	if base == "" && g.o.Base != nil {
		base = g.o.Base.Commit
	}
	if len(unmet) == 0 || g.o.Subject.PR == 0 && base == "" {
		return unmet
	}
	return setup.FindUnmet(head, g.baseRequirements(ctx, base, dirs), g.tools)
}

// findGoModules returns the Go modules of the workspace.
func (g *Gate) findGoModules() []proposal.GoModule {
	root, err := os.OpenRoot(g.o.Workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	return setup.GoModules(root.FS(), g.o.Subject.Cwd)
}

// baseRequirements returns what the commit base asks for, or nil if it cannot be read.
func (g *Gate) baseRequirements(ctx context.Context, base string, dirs []string) []setup.Requirement {
	if base == "" || !isTop(g.o.Workspace) {
		return nil
	}
	repository, err := checkout.OpenLocal(ctx, g.o.Workspace)
	if err != nil {
		return nil
	}
	defer repository.Close()
	wanted := func(file string) bool {
		return slices.Contains(setup.ToolFiles, path.Base(file)) && slices.Contains(dirs, path.Dir(file))
	}
	contents, _, err := repository.ReadDir(ctx, base, "", wanted, checkout.Limits{})
	if err != nil {
		return nil
	}
	return setup.ReadRequirements(func(file string) (string, bool) {
		i := slices.IndexFunc(contents, func(c checkout.Content) bool { return c.Path == file })
		if i < 0 || len(contents[i].Bytes) > setup.MaxFile {
			return "", false
		}
		return string(contents[i].Bytes), true
	}, dirs...)
}
