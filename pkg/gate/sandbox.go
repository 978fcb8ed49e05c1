// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Privileged returns a *proposal.StopError if this process lacks the privileges to
// run commands.
func Privileged() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &proposal.StopError{Code: "sandbox.not-root", Message: "cannot run commands: cgroups, mounts and namespaces need root",
		Hint: "run fumehood as root or with sudo; fumehood check decides without it"}
}

// SandboxOptions returns the sandbox options that every Gate uses: the root file
// system, the workspace, the variables of well-known tools and the guard for git. Package
// order completes them. Its error is a *proposal.StopError.
func SandboxOptions(workspace string, root rootfs.Root, runsc install.Runsc) (sandbox.Options, error) {
	dir, err := resolveDir(workspace)
	if err != nil {
		return sandbox.Options{}, err
	}
	o := sandbox.Options{
		Verify: runsc.CheckUnchanged,
		Runsc:  runsc.Path, Init: runsc.Init, Links: root.Links, Files: root.Files, Path: root.Path,
		Workspace: dir, Env: toolEnv(), Guard: gitGuard(),
	}
	if root.ImagePath != "" {
		o.RootImage = sandbox.Image{Source: root.ImagePath, Digest: root.Digest}
	}
	for _, target := range slices.Sorted(maps.Keys(root.Binds)) {
		o.Binds = append(o.Binds, sandbox.Bind{Source: root.Binds[target], Target: target})
	}
	return o, nil
}

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

// withSetup returns o with what set-up adds to every sandbox, and with the gate's cgroup.
func (g *Gate) withSetup(o sandbox.Options) sandbox.Options {
	o.Env = maps.Clone(o.Env)
	maps.Copy(o.Env, g.o.Setup.Env)
	o.Path, o.Cgroup = setupPath(g.o.Setup)+o.Path, g.o.Cgroup
	return o
}

// planSandbox returns the options of a sandbox for commands, before package order completes them.
func (g *Gate) planSandbox(commands int) sandbox.Options {
	o := g.sandbox
	o.ImageFrom, o.Pool = g.o.imageFrom(commands), g.early
	return o
}

// sessionSandbox returns the options of a session's sandbox, before package order completes them.
func (g *Gate) sessionSandbox() sandbox.Options {
	o := g.sandbox
	o.Files = maps.Clone(o.Files)
	maps.Copy(o.Files, sandbox.InterpreterFiles())
	o.ImageFrom, o.Pool = g.o.imageFrom(0), g.o.Pool
	return o
}

// Toolchains returns the compilers and interpreters in PATH inside, with their versions
// from the cache as far as it has them. Only a process that can run commands uses it.
func Toolchains(ctx context.Context, root rootfs.Root, search rootfs.Search) []proposal.Toolchain {
	dir, err := install.CacheDir()
	if err != nil || Privileged() != nil {
		return root.Toolchains(ctx, search, "")
	}
	return root.Toolchains(ctx, search, filepath.Join(dir, "versions.json"))
}

// goCache returns the host's directory with Go's compiled standard library, if commands can
// use one. Without it they compile what they need.
func (g *Gate) goCache(ctx context.Context, search rootfs.Search) string {
	dir, err := install.CacheDir()
	mounted := slices.ContainsFunc(g.o.MountsUnsafe, func(m Mount) bool { return m.Target == rootfs.GoCacheInside })
	if err != nil || !g.o.Cache || !g.o.usesGo() || mounted {
		return ""
	}
	found, err := g.root.GoCache(ctx, search, dir, g.o.notice)
	if err != nil && ctx.Err() == nil {
		g.o.notice("warning: commands compile Go's standard library themselves: " + err.Error())
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
	return slices.ContainsFunc(o.Setup.Steps, func(s setup.Step) bool { return len(s.Argv) > 0 && s.Argv[0] == "go" })
}

// resolveDir resolves path, following links: the sandbox mounts it without following any.
func resolveDir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", &proposal.StopError{Code: "sandbox.workspace", Message: fmt.Sprintf("cannot read the directory %q", path),
			Hint: "name the directory that holds the pull request's code: --workspace, or Options.Workspace", Err: err}
	}
	return abs, nil
}

// toolEnv prevents well-known tools from waiting for a network, a pager or a person.
func toolEnv() map[string]string {
	return map[string]string{
		"CI": "true", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0",
		"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOTELEMETRY": "off", "GOFLAGS": "-buildvcs=false",
		"PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
		"npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false",
		"CARGO_NET_OFFLINE": "true", "DEBIAN_FRONTEND": "noninteractive",
	}
}
