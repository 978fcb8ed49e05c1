// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
	// Version is the version that fumehood and a node's agent report; empty for a build
	// that is not a release.
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
		return &proposal.StopError{Code: CodeBuild, Message: "there is no release for " + r.Arch,
			Hint: "build for amd64 or arm64"}
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
	if err := buildInstallation(ctx, r.Root, key, r.Dir, r.Arch, releaseFlags, progress); err != nil {
		return err
	}
	progress("building " + programName + " for " + platformOf(r.Arch))
	return r.buildBound(ctx, r.Root, "./cmd/"+programName, programName)
}

// nodeModule has the programs of a node of Kubernetes, with dependencies of its own.
const nodeModule = "k8s"

// NodePrograms are what BuildNode adds.
var NodePrograms = []string{"containerd-shim-fumehood-v1", "fumehood-node-agent", "fumehood-claims"}

// BuildNode adds the programs of a node of Kubernetes to what Build wrote to r.Dir. They, too, accept no
// other installation.
func (r Release) BuildNode(ctx context.Context) error {
	return r.buildBound(ctx, filepath.Join(r.Root, nodeModule), "./cmd/...", NodePrograms[0])
}

// buildBound builds what pattern matches into r.Dir. The programs are bound to the installation there: they
// have the digest of its manifest.
func (r Release) buildBound(ctx context.Context, root, pattern string, programs ...string) error {
	manifest, err := os.ReadFile(filepath.Join(r.Dir, manifestName))
	if err != nil {
		return buildFailure("cannot read the new manifest", err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(manifest))
	flags := "-s -w -X " + reflect.TypeFor[Release]().PkgPath() + ".releaseDigest=" + digest
	if r.Version != "" {
		flags += " -X main.version=" + r.Version
	}
	if err := goBuild(ctx, root, r.Dir, r.Arch, slices.Concat(releaseFlags, []string{"-ldflags", flags}),
		pattern); err != nil {
		return err
	}
	for _, name := range programs {
		// The linker says nothing of a variable that is not there.
		if program, err := os.ReadFile(filepath.Join(r.Dir, name)); err != nil ||
			!bytes.Contains(program, []byte(digest)) {
			return buildFailure(name+" does not have the digest of its installation", err)
		}
	}
	return nil
}
