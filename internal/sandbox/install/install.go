// SPDX-License-Identifier: Apache-2.0

// Package install finds the fumehood-runsc that starts sandboxes, builds it once if allowed, and
// verifies it before it is used.
//
// An installation is a directory:
//
//	fumehood-runsc                       our build of runsc
//	fumehood-init                        the first process inside a sandbox
//	gvisor-bin/gvisor_sentry             the same runsc again (a hard link)
//	gvisor-bin/gvisor-sentry-prewarmer   optional: saves 8–16 ms a sandbox
//	fumehood-runsc.json                  the manifest: versions, sizes and digests
//
// Find guarantees that what it returns was, a moment ago, a complete installation: it has the
// gVisor version that this program is pinned to; every file has the digest in the manifest;
// gvisor-bin has no file that the manifest does not list (runsc would run it); there is no symbolic
// link; everything is owned by root or the current user, writable by no other user, and accessible
// to the user that the sentry switches to. Anything else is a proposal.StopError with one of the
// Codes below; there is no fallback to another runsc, and no way to skip a check.
//
// Other processes do not remove an installation from the cache while a Runsc that Find
// returned for it is reachable.
//
// It does not protect against root or the current user, who can write the manifest as well as the
// files; a released program protects slightly better, because it contains its manifest's digest.
// Nor does it protect against a build from a tampered source tree: it compiles the tree that the
// running program was compiled from, never one found through the working directory, which may be a
// pull request's.
//
// runsc reads GVISOR_SIDECAR_BINARIES_DIR from its environment and would run the sentry in that
// directory: start it with a controlled environment.
package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Codes of this package's StopErrors.
const (
	CodeMissing     = "sandbox.runsc-missing"
	CodeVersion     = "sandbox.runsc-version"
	CodeDigest      = "sandbox.runsc-digest"
	CodePermissions = "sandbox.runsc-permissions"
	CodeBuild       = "sandbox.runsc-build"
)

// Options configure where to look. The zero value looks in the program's directory and in the
// cache, and builds nothing.
type Options struct {
	// Path is an explicit fumehood-runsc. If set, no other place is searched.
	Path string
	// CacheDir is the cache of builds. Empty means FUMEHOOD_CACHE, or else /var/cache/fumehood for
	// root and "fumehood" in the user's cache directory for others.
	CacheDir string
	// Build allows compiling a missing installation into the cache. It needs the go command and
	// about a minute, and the network if modules are missing.
	Build bool
	// Remember, if set, is a directory that only this user can change, for the identities of files
	// that were verified, which Find does not read again. It makes the directory.
	Remember string
	// Progress, if set, is called with short lines that report slow steps.
	Progress func(string)
}

// releaseDigest is the SHA-256 in hex of the manifest that was released together with this program,
// set by the linker (-X). A program that has it uses only that installation and never builds one.
var releaseDigest string

// Find returns a verified installation: the one at o.Path, or else the one in the running program's
// directory, or else the one in the cache, which it builds if o.Build. Concurrent processes build
// it only once. A damaged installation is an error; it is neither skipped nor repaired.
func Find(ctx context.Context, o Options) (Runsc, error) {
	if o.Path != "" {
		return findAtPath(o)
	}
	if dir := findBesideProgram(); dir != "" {
		return verifyInstallation(dir, releaseDigest, o.Remember)
	}
	if releaseDigest != "" {
		return Runsc{}, missingError("this release of fumehood came with a fumehood-runsc, which is no longer next to it")
	}
	return findCached(ctx, o)
}

func findAtPath(o Options) (Runsc, error) {
	abs, err := filepath.Abs(o.Path)
	if err != nil {
		return Runsc{}, missingError(fmt.Sprintf("cannot resolve %q: %v", o.Path, err))
	}
	if filepath.Base(abs) != runscName {
		return Runsc{}, missingError(fmt.Sprintf("%q is not a %s; other builds of runsc are not used", o.Path,
			runscName))
	}
	if _, err := os.Lstat(abs); err != nil {
		return Runsc{}, missingError(err.Error())
	}
	return verifyInstallation(filepath.Dir(abs), releaseDigest, o.Remember)
}

// findBesideProgram returns the running program's directory if it contains a fumehood-runsc.
func findBesideProgram() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	dir := filepath.Dir(program)
	if _, err := os.Lstat(filepath.Join(dir, runscName)); err != nil {
		return ""
	}
	return dir
}

func missingError(message string) error {
	return &proposal.StopError{
		Code:    CodeMissing,
		Message: message,
		Hint: "install the release of fumehood, which carries " + runscName +
			", or run fumehood from its source with Go installed, so that it can build it",
	}
}
