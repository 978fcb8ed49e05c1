// SPDX-License-Identifier: Apache-2.0

// Package install finds the fumehood-runsc that sandboxes are started with,
// builds it once when it may, and vouches for it before it is used.
//
// An installation is a folder:
//
//	fumehood-runsc                       our build of runsc
//	fumehood-init                        the first process inside a sandbox
//	gvisor-bin/gvisor_sentry             the same runsc again (a hard link)
//	gvisor-bin/gvisor-sentry-prewarmer   optional: saves 8–16 ms a sandbox
//	fumehood-runsc.json                  the manifest: versions, sizes and digests
//
// Find promises that what it returns was, a moment ago, a whole installation: of
// the gVisor version that this program is pinned to, every file with the digest
// that the manifest gives, no file in gvisor-bin that the manifest does not name
// (runsc would run it), no symbolic link, owned by root or by us, writable by
// nobody else, and within reach of the user that the sentry becomes. Anything else is a proposal.StopError with one of the Codes below;
// there is no fallback to another runsc, and no way to skip a check.
//
// Other processes do not remove an installation from the cache while a Runsc that Find
// returned for it is reachable.
//
// It does not protect against root or our own user, who can write the manifest
// as well as the files; a released program does a little more, since it carries
// its manifest's digest. Nor does it protect against a build from a tampered
// source tree: it compiles the very tree that the running program was compiled
// from, never one found through the working directory, which may be a pull
// request's.
//
// runsc takes GVISOR_SIDECAR_BINARIES_DIR from its environment and would run the
// sentry that lies there: start it with an environment of your own making.
package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Codes of the StopErrors that this package makes.
const (
	CodeMissing     = "sandbox.runsc-missing"
	CodeVersion     = "sandbox.runsc-version"
	CodeDigest      = "sandbox.runsc-digest"
	CodePermissions = "sandbox.runsc-permissions"
	CodeBuild       = "sandbox.runsc-build"
)

// Options say where to look. The zero value looks beside the program and in the
// cache, and builds nothing.
type Options struct {
	// Path is an explicit fumehood-runsc. When set, nothing else is looked at.
	Path string
	// CacheDir holds what was built. Empty means FUMEHOOD_CACHE, or else
	// /var/cache/fumehood for root and "fumehood" in the user's cache for others.
	CacheDir string
	// Build allows compiling into the cache what is not there yet. It takes the
	// go command and a minute, and the network where modules are not at hand.
	Build bool
	// Progress, if set, is told in short lines what takes so long.
	Progress func(string)
}

// releaseDigest is the SHA-256 in hex of the manifest that was released together
// with this program, set by the linker (-X). A program that has it uses that
// installation and no other, and never builds one.
var releaseDigest string

// Find returns a verified installation: the one at o.Path, or else the one beside
// the running program, or else the one in the cache, which it builds if o.Build.
// Processes that ask at the same time build it once. A damaged installation is an
// error; it is neither passed over nor repaired.
func Find(ctx context.Context, o Options) (Runsc, error) {
	if o.Path != "" {
		return explicit(o.Path)
	}
	if dir := beside(); dir != "" {
		return verify(dir, releaseDigest)
	}
	if releaseDigest != "" {
		return Runsc{}, missing("this release of fumehood came with a fumehood-runsc, which is no longer beside it")
	}
	return cached(ctx, o)
}

func explicit(path string) (Runsc, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Runsc{}, missing(fmt.Sprintf("cannot resolve %q: %v", path, err))
	}
	if filepath.Base(abs) != runscName {
		return Runsc{}, missing(fmt.Sprintf("%q is not a %s; other builds of runsc are not used", path, runscName))
	}
	if _, err := os.Lstat(abs); err != nil {
		return Runsc{}, missing(err.Error())
	}
	return verify(filepath.Dir(abs), releaseDigest)
}

// beside returns the running program's folder if a fumehood-runsc lies in it.
func beside() string {
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

func missing(message string) error {
	return &proposal.StopError{
		Code:    CodeMissing,
		Message: message,
		Hint: "install the release of fumehood, which carries " + runscName +
			", or run fumehood from its source with Go at hand, so that it can build it",
	}
}
