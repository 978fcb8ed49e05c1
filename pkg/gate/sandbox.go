// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/image/oci"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/source/config/devcontainer"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// imageCommands is how many commands a run must have for an image of its workspace to pay:
// one or two may read few files.
const imageCommands = 3

// imageFrom returns sandbox.Options.ImageFrom for a run of commands, or 0 for a session.
func (o Options) imageFrom(commands int) int {
	if o.ImageFrom != 0 || commands >= imageCommands || sandbox.DefaultImageFrom == 1 {
		return o.ImageFrom
	}
	return math.MaxInt
}

// withSetup returns o with what s adds to every sandbox, and with the gate's cgroup.
func (g *Gate) withSetup(o sandbox.Options, s setup.Setup) sandbox.Options {
	o.Env = maps.Clone(o.Env)
	maps.Copy(o.Env, s.Env)
	o.Path, o.Cgroup = pathOf(s)+o.Path, g.o.Cgroup
	return o
}

// planSandbox returns the options of a sandbox for commands after s, before package order completes
// them.
func (g *Gate) planSandbox(commands int, s setup.Setup) sandbox.Options {
	o := g.withSetup(g.sandbox, s)
	o.ImageFrom, o.Pool = g.o.imageFrom(commands), g.early
	return o
}

// sessionSandbox returns the options of a session's sandbox, before package order completes them.
func (g *Gate) sessionSandbox() sandbox.Options {
	_, whole := g.o.wholePlanner().Plan(proposal.Plan{})
	o := g.withSetup(g.sandbox, whole)
	o.Files = maps.Clone(o.Files)
	maps.Copy(o.Files, sandbox.InterpreterFiles())
	o.ImageFrom, o.Pool = g.o.imageFrom(0), g.o.Pool.sandboxes()
	return o
}

// goCache returns the host's directory with Go's compiled standard library, if commands can
// use one. Without it they compile what they need.
func (g *Gate) goCache(ctx context.Context, search rootfs.Search) string {
	dir, err := install.CacheDir()
	mounted := slices.ContainsFunc(g.o.MountsUnsafe, func(m Mount) bool { return m.Target == rootfs.GoCacheInside })
	if err != nil || !g.o.Cache || !g.o.usesGo() || mounted {
		return ""
	}
	found, err := g.root.GoCache(ctx, search, dir, g.o.sendNotice)
	if err != nil && ctx.Err() == nil {
		g.o.sendNotice("warning: commands compile Go's standard library themselves: " + err.Error())
	}
	return found
}

// usesGo reports whether the workspace is a Go module, or set-up uses Go.
func (o Options) usesGo() bool {
	for _, name := range []string{"go.mod", "go.work"} {
		if _, err := os.Lstat(filepath.Join(o.Workspace, name)); err == nil {
			return true
		}
	}
	return slices.ContainsFunc(o.Setup.Steps, func(s SetupStep) bool { return len(s.Argv) > 0 && s.Argv[0] == "go" })
}

// search returns where o's root finds tools.
func (o Options) search() rootfs.Search {
	return rootfs.Search{Path: o.Tools, Workspace: o.Workspace, Owners: o.ToolOwners}
}

// openRoot sets g.root.
func (g *Gate) openRoot(ctx context.Context, search rootfs.Search) (err error) {
	switch {
	case oci.Is(g.o.Rootfs):
		if g.image, err = environment.OpenImage(ctx, g.o.Rootfs, g.o.sendNotice); err != nil {
			return err
		}
		g.root = g.image.Root
		return nil
	case devcontainer.Is(g.o.Rootfs):
		return &proposal.StopError{Code: "rootfs.devcontainer", Message: "Options.Rootfs names a devcontainer.json",
			Hint: "name the image that it names"}
	}
	g.root, err = search.Open(g.o.Rootfs)
	return err
}
