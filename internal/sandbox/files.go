// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io/fs"
	"os"
	"strings"

	imagetree "github.com/fumehood/fumehood/internal/sandbox/image/tree"
)

// files are those that the sources of binds name, by absolute paths: the host's, or those
// of an image. Only regular files that Open returns are io.ReaderAts. Sys of a FileInfo is
// a *syscall.Stat_t whose device and inode identify the content in this process.
type files interface {
	Open(name string) (fs.File, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadLink(name string) (string, error)
	ReadDir(name string) ([]fs.DirEntry, error)
}

// hostFiles are the host's.
type hostFiles struct{}

func (hostFiles) Open(name string) (fs.File, error)          { return os.Open(name) }
func (hostFiles) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (hostFiles) ReadLink(name string) (string, error)       { return os.Readlink(name) }
func (hostFiles) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// imageFiles are those of an image.
type imageFiles struct{ fs *imagetree.FS }

// inTree makes an absolute path one of package io/fs.
func inTree(name string) string {
	if name = strings.Trim(name, "/"); name == "" {
		return "."
	}
	return name
}

func (i imageFiles) Open(name string) (fs.File, error)          { return i.fs.Open(inTree(name)) }
func (i imageFiles) Lstat(name string) (fs.FileInfo, error)     { return i.fs.Lstat(inTree(name)) }
func (i imageFiles) ReadLink(name string) (string, error)       { return i.fs.ReadLink(inTree(name)) }
func (i imageFiles) ReadDir(name string) ([]fs.DirEntry, error) { return i.fs.ReadDir(inTree(name)) }

// openRoot opens and verifies the root's image, if it has one, and sets o.files.
func (o *Options) openRoot() error {
	o.files = hostFiles{}
	if o.RootImage.Source == "" {
		return nil
	}
	var err error
	if o.rootFile, err = o.RootImage.openVerified(); err != nil {
		return err
	}
	found, err := imagetree.Open(o.rootFile)
	if err != nil {
		return badImage(o.RootImage.Source, err)
	}
	o.files, o.closeRoot = imageFiles{found}, found.Close
	return nil
}
