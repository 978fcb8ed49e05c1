// SPDX-License-Identifier: Apache-2.0

// Package image writes file trees as EROFS images, which gVisor mounts read-only: its
// kernel maps the file, and opening a file in it needs no process and no system call of
// the host.
//
// The format is that of the kernel's documentation,
// https://docs.kernel.org/filesystems/erofs.html, and of fs/erofs/erofs_fs.h. Images have
// blocks of 4096 bytes, extended inodes and uncompressed plain data ("flat plain"):
// gVisor cannot map files that are stored inline or compressed. Holes become zeros,
// extended attributes and access control lists are left out.
//
// An image depends on its entries alone: names, modes, owners, times and content, and the
// order in which files with content are added. It has no UUID and no build time.
//
//	block 0        superblock at byte 1024
//	data           contents of files, in the order of Add
//	directories    and targets of symbolic links, sorted by path
//	inodes         64 bytes each, in the same order
//
// Content may come from an attacker. What can be asked for is bounded by Options, names
// by Linux's limits, and an entry that is not certain is an error: a Writer that failed
// once accepts nothing more and leaves no file.
package image

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of an image when Options leave them open.
const (
	DefaultMaxFiles = 500_000
	DefaultMaxBytes = 8 << 30
)

// Options bound an image.
type Options struct {
	MaxFiles int   // entries and their parents; 0 means DefaultMaxFiles
	MaxBytes int64 // size of the image file, with padding; 0 means DefaultMaxBytes
}

// Codes of the *proposal.StopErrors of this package.
const (
	CodeEntry   = "image.entry"   // an entry that an image cannot have
	CodeLimit   = "image.limit"   // more files or bytes than Options allow
	CodeContent = "image.content" // a file that is not as long as it should be, or changed
	CodeWrite   = "image.write"   // the image file cannot be written or read
	CodeDigest  = "image.digest"  // not the image that was expected
)

func entryError(path, reason string) error {
	return &proposal.StopError{Code: CodeEntry, Message: fmt.Sprintf("cannot add %q to an image: %s", path, reason),
		Hint: "remove the file, or show the directory without an image"}
}

func tooLarge(what string, limit int64) error {
	return &proposal.StopError{Code: CodeLimit,
		Message: fmt.Sprintf("the image exceeds its limit of %d %s", limit, what),
		Hint:    "remove files that the run does not need"}
}

func unreadableError(path string, err error) error {
	return &proposal.StopError{Code: CodeContent, Message: fmt.Sprintf("cannot read %q for an image", path),
		Hint: "make the file readable, or show the directory without an image", Err: err}
}

func changedError(path string, err error) error {
	return &proposal.StopError{Code: CodeContent,
		Message: fmt.Sprintf("cannot read %q: it is not what it was when the image was begun", path),
		Hint:    "let no other program change the directory meanwhile", Err: err}
}

func cannotWrite(path string, err error) error {
	return &proposal.StopError{Code: CodeWrite, Message: fmt.Sprintf("cannot write the image %q", path),
		Hint: "free some space, or set TMPDIR to a writable directory", Err: err}
}
