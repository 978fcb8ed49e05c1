// SPDX-License-Identifier: Apache-2.0

// Package environment has what every command finds before policy grants it anything: the root file
// system, the workspace, the variables of well-known tools, the guard for git, the toolchains, and
// directories of the host that an operator shows.
//
// Nothing in it comes from this process's environment, and no value is a secret.
package environment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/proposal"
)

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
		Workspace: dir, Env: ToolVariables(), Guard: gitGuard(),
	}
	if root.ImagePath != "" {
		o.RootImage = sandbox.Image{Source: root.ImagePath, Digest: root.Digest}
	}
	for _, target := range slices.Sorted(maps.Keys(root.Binds)) {
		o.Binds = append(o.Binds, sandbox.Bind{Source: root.Binds[target], Target: target})
	}
	return o, nil
}

// FindToolchains returns the compilers and interpreters in PATH inside, with their versions
// from the cache as far as it has them. Only a process that can run commands uses it.
func FindToolchains(ctx context.Context, root rootfs.Root, search rootfs.Search) []proposal.Toolchain {
	dir, err := install.CacheDir()
	if err != nil || process.CheckRoot() != nil {
		return root.Toolchains(ctx, search, "")
	}
	return root.Toolchains(ctx, search, filepath.Join(dir, "versions.json"))
}

// resolveDir resolves path, following links: the sandbox mounts it without following any.
func resolveDir(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", &proposal.StopError{Code: "sandbox.workspace",
			Message: fmt.Sprintf("cannot read the directory %q", path),
			Hint:    "name the directory that holds the pull request's code: --workspace, or Options.Workspace",
			Err:     err}
	}
	return abs, nil
}

// ToolVariables prevent well-known tools from waiting for a network, a pager or a person. Clients of a registry
// that was granted get their own number of retries with it. pip says only with one retry that it found no host.
func ToolVariables() map[string]string {
	return map[string]string{
		"CI": "true", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0",
		"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOTELEMETRY": "off", "GOFLAGS": "-buildvcs=false",
		"PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
		"npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false",
		"npm_config_fetch_retries": "0", "YARN_HTTP_RETRY": "0", "PIP_RETRIES": "1", "UV_HTTP_RETRIES": "0",
		"CARGO_NET_OFFLINE": "true", "DEBIAN_FRONTEND": "noninteractive",
	}
}
