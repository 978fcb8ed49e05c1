// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package demotools finds what the demo needs of this host.
package demotools

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// tools are the programs that the demo's commands need from the host.
var tools = []string{"go", "gofmt", "node", "python3"}

// Keep leaves out the proposals whose program this host lacks: they would show a
// missing program, not fumehood.
func Keep(proposals []proposal.Proposal, say func(string)) []proposal.Proposal {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		say(tool + " is not installed: the demo skips the commands that need it")
		proposals = slices.DeleteFunc(proposals, func(q proposal.Proposal) bool { return toolOf(q) == tool })
	}
	return proposals
}

// toolOf is the first word of a proposal of the demo.
func toolOf(q proposal.Proposal) string {
	switch q.Form() {
	case "argv":
		return q.Argv[0]
	case "code":
		return "python3"
	}
	first, _, _ := strings.Cut(q.Run, " ")
	return first
}

// BuildCache returns the host's Go build cache, which holds what "go run" compiled, or "".
// With it the demo's Go test takes a second; without it Go compiles its standard library
// inside the sandbox. A file system that may not show root's files to the unprivileged
// user inside would stop the run, so only those that do are used.
func BuildCache() string {
	dir := os.Getenv("GOCACHE")
	if user, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(user, "go-build")
	}
	dir, err := filepath.EvalSymlinks(dir)
	var in unix.Statfs_t
	if err != nil || !filepath.IsAbs(dir) || unix.Statfs(dir, &in) != nil {
		return ""
	}
	if !slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}, in.Type) {
		return ""
	}
	return dir
}

// BuildCacheInside is where the go command looks for it in a sandbox. What it writes is
// thrown away.
const BuildCacheInside = "/home/fumehood/.cache/go-build"
