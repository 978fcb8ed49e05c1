// SPDX-License-Identifier: Apache-2.0

// Package oci makes an image file of package image from an OCI or Docker image: the root
// file system of a sandbox.
//
// The content is bound to one digest. The caller's reference has it, or for a local layout
// it is that of the only image there. The digest names a manifest, or an index from which
// the manifest of this platform is taken; the manifest names the configuration and the
// layers. Each is read at most once, and compared with its digest and size before anything
// is made from it. Of a tag alone nothing is used.
//
// Layers come from an attacker. They are applied to a tree in memory, as the image
// specification says, and never to a directory of the host: no name and no link in a layer
// leads anywhere else than to that tree. What a higher layer removes is not in the image
// file. Everything belongs to root; setuid and setgid bits, extended attributes, devices,
// sockets and pipes are left out and counted. What can be asked for is bounded by Limits.
//
// The image's own settings (variables, user, entry point, volumes) are data in Image.Settings
// and have no effect here.
//
// # Store
//
// Finished image files are kept in a directory that only this user can use, by a key of the
// digest, the platform and the version of this package. Each has a description beside it,
// with the key and the digest of the file. Both are verified before each use; what does not
// fit is deleted and made again. An entry appears complete, by a rename, or not at all.
// Anyone who can write to the directory can replace both files: it protects against
// accidents and mix-ups, not against root.
package oci

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// version is part of each key in the store: image files of other versions are not used.
const version = "1"

// Codes of the *proposal.StopErrors of this package.
const (
	CodeReference = "rootfs.reference" // not a reference to an image
	CodeUnpinned  = "rootfs.unpinned"  // a reference without a digest
	CodeDigest    = "rootfs.digest"    // content that is not what its digest or size says
	CodeFormat    = "rootfs.format"    // an image of a kind that is not supported
	CodePlatform  = "rootfs.platform"  // no image for this machine
	CodeLayer     = "rootfs.layer"     // a layer with an entry that cannot be applied
	CodeLimit     = "rootfs.limit"     // more than Limits allow
	CodePull      = "rootfs.pull"      // the image cannot be read
	CodeStore     = "rootfs.store"     // the store cannot be used
	CodeDisk      = "rootfs.disk"      // the disk is full
)

// Limits bound an image. The zero value means the defaults.
type Limits struct {
	Bytes   int64 // of all layers without compression, and of the image file; 16 GiB
	File    int64 // of one file; 4 GiB
	Entries int   // in all layers; 1,000,000
	Files   int   // of the result, in memory while it is made; 500,000
	Layers  int   // 500
	Ratio   int64 // bytes of a layer for each compressed byte, beyond the first 64 MiB; 100
	Kept    int64 // bytes of the store; 20 GiB
}

func (l Limits) orDefault() Limits {
	l.Bytes, l.File, l.Kept = cmp.Or(l.Bytes, 16<<30), cmp.Or(l.File, 4<<30), cmp.Or(l.Kept, 20<<30)
	l.Entries, l.Files, l.Layers = cmp.Or(l.Entries, 1_000_000), cmp.Or(l.Files, 500_000), cmp.Or(l.Layers, 500)
	l.Ratio = cmp.Or(l.Ratio, 100)
	return l
}

const (
	maxManifest = 4 << 20 // bytes of a manifest, an index or a configuration
	maxName     = 255     // bytes of a name
	maxPath     = 4095    // bytes of a path, or of a link's target
	maxLinks    = 16      // links that the parents of one entry may lead through
	freeBytes   = 64 << 20
)

func newStopError(code, hint, format string, args ...any) *proposal.StopError {
	return &proposal.StopError{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}
}

func badLayer(format string, args ...any) error {
	return newStopError(CodeLayer, "use another image; this one is damaged or hostile", "cannot apply a layer: "+format,
		args...)
}

func tooMuch(format string, args ...any) error {
	return newStopError(CodeLimit, "use a smaller image", "the image is too large: "+format, args...)
}

// onDisk makes err, of a file of the store, a StopError.
func onDisk(err error) error {
	var known *proposal.StopError
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return &proposal.StopError{Code: CodeDisk, Message: "cannot make the image: the disk is full",
			Hint: "free some space, or set FUMEHOOD_CACHE to a directory on a larger disk", Err: err}
	case err == nil || errors.As(err, &known):
		return err
	}
	return &proposal.StopError{Code: CodeStore, Message: "cannot use the store of images",
		Hint: "set FUMEHOOD_CACHE to a directory that this user can write to", Err: err}
}
