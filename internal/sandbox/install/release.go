// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// programName is the command in the same directory as a released installation.
const programName = "fumehood"

// releaseArchs are the architectures that releases are made for.
var releaseArchs = []string{"amd64", "arm64"}

// A Release is a build of everything that one machine needs.
type Release struct {
	// Root is the module's directory.
	Root string
	// Dir is the output directory; it must exist and be empty.
	Dir string
	// Arch is amd64 or arm64.
	Arch string
	// Version is the version that fumehood reports; empty for a build that is not
	// a release.
	Version string
	// Progress, if set, is called with short lines that report slow steps.
	Progress func(string)
}

// Build writes fumehood and the installation that it will use to r.Dir. The
// program is linked with the digest of that installation's manifest: it accepts no
// other and builds none, so the program's digest identifies everything.
//
// The same sources, Go and, for the prewarmer, C compiler give the same bytes,
// whatever the directory, the time and the user. For another architecture there is
// no prewarmer, and the result is not tested.
func (r Release) Build(ctx context.Context) error {
	if !slices.Contains(releaseArchs, r.Arch) {
		return &proposal.StopError{Code: CodeBuild, Message: "there is no release for " + r.Arch, Hint: "build for amd64 or arm64"}
	}
	if strings.ContainsAny(r.Version, " \t\n'\"") { // it becomes part of a linker flag
		return &proposal.StopError{Code: CodeBuild, Message: fmt.Sprintf("invalid version %q", r.Version)}
	}
	progress := r.Progress
	if progress == nil {
		progress = func(string) {}
	}
	key, err := sourceKey(r.Root, platformOf(r.Arch))
	if err != nil {
		return buildFailure("cannot read the source", err)
	}
	if err := build(ctx, r.Root, key, r.Dir, r.Arch, releaseFlags, progress); err != nil {
		return err
	}
	flags, err := r.linkerFlags()
	if err != nil {
		return err
	}
	if r.Version != "" {
		flags += " -X main.version=" + r.Version
	}
	progress("building " + programName + " for " + platformOf(r.Arch))
	return goBuild(ctx, r.Root, r.Dir, r.Arch, slices.Concat(releaseFlags, []string{"-ldflags", flags}), "./cmd/"+programName)
}

// nodeModule has the programs of a node of Kubernetes, with dependencies of its own.
const nodeModule = "k8s"

// NodePrograms are what BuildNode adds.
var NodePrograms = []string{"containerd-shim-fumehood-v1", "fumehood-node-agent", "fumehood-claims"}

// BuildNode adds the programs of a node of Kubernetes to what Build wrote to r.Dir. They, too, accept no
// other installation.
func (r Release) BuildNode(ctx context.Context) error {
	flags, err := r.linkerFlags()
	if err != nil {
		return err
	}
	root := filepath.Join(r.Root, nodeModule)
	return goBuild(ctx, root, r.Dir, r.Arch, slices.Concat(releaseFlags, []string{"-ldflags", flags}), "./cmd/...")
}

// linkerFlags bind a program to the installation in r.Dir.
func (r Release) linkerFlags() (string, error) {
	manifest, err := os.ReadFile(filepath.Join(r.Dir, manifestName))
	if err != nil {
		return "", buildFailure("cannot read the new manifest", err)
	}
	digest := sha256.Sum256(manifest)
	return "-s -w -X " + modulePath + "/pkg/sandbox/install.releaseDigest=" + hex.EncodeToString(digest[:]), nil
}
