// SPDX-License-Identifier: Apache-2.0

package image

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

const (
	maxName = 255
	maxPath = 4096
	maxLink = 4095 // gVisor cuts longer targets
)

// A node is an inode; with several names only one of them has it as name.
type node struct {
	name     string
	mode     fs.FileMode
	uid, gid uint32
	modTime  time.Time
	target   string           // of a symbolic link
	children map[string]*node // of a directory
	implied  bool             // not added yet, only something below it
	links    uint32           // names beyond the first
	size     int64
	block    uint32 // where its data begins
	number   uint64 // its place among the inodes, from 1; 0 before Close
}

func newDirectory(name string) *node {
	return &node{name: name, mode: fs.ModeDir | 0o755, modTime: time.Unix(0, 0), children: map[string]*node{},
		implied: true}
}

func (n *node) replaceWith(other *node) { *n = *other }

func (n *node) isDir() bool { return n.children != nil }

// setEntry gives n what e says of it, once.
func (n *node) setEntry(e Entry) error {
	switch {
	case !n.implied:
		return entryError(e.Path, "the path occurs twice")
	case n.isDir() && !e.Mode.IsDir():
		return entryError(e.Path, "it is a directory already")
	case e.Mode.IsDir() && !n.isDir():
		n.children = map[string]*node{}
	}
	n.mode = e.Mode & (fs.ModeType | fs.ModeSticky | fs.ModePerm)
	n.uid, n.gid, n.target, n.implied = e.UID, e.GID, e.Link, false
	if n.modTime = e.ModTime; n.modTime.IsZero() {
		n.modTime = time.Unix(0, 0)
	}
	return nil
}

// checkEntry returns an error for what no image can have.
func checkEntry(e Entry) error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	link := e.Mode&fs.ModeSymlink != 0
	switch t := e.Mode.Type(); {
	case t != 0 && t != fs.ModeDir && t != fs.ModeSymlink:
		return entryError(e.Path, "it is a "+specialTypeName(t))
	case link && (e.Link == "" || len(e.Link) > maxLink || strings.ContainsRune(e.Link, 0)):
		return entryError(e.Path, "its target is empty, too long or has a null byte")
	case !link && e.Link != "", e.Hard != "" && !e.Mode.IsRegular():
		return entryError(e.Path, "its type and its target contradict each other")
	case e.Size < 0 || e.Size > 0 && (!e.Mode.IsRegular() || e.Hard != ""):
		return entryError(e.Path, "its type and its size contradict each other")
	case e.Path == "." && !e.Mode.IsDir():
		return entryError(e.Path, "the root must be a directory")
	}
	return nil
}

func checkPath(name string) error {
	switch {
	case len(name) == 0 || len(name) > maxPath || strings.ContainsRune(name, 0):
		return entryError(name, "the path is empty, too long or has a null byte")
	case name == ".." || strings.HasPrefix(name, "../") || path.IsAbs(name) || path.Clean(name) != name:
		return entryError(name, "the path is not relative and clean")
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxName {
			return entryError(name, "a name in it is longer than 255 bytes")
		}
	}
	return nil
}

func specialTypeName(t fs.FileMode) string {
	switch t {
	case fs.ModeNamedPipe:
		return "named pipe"
	case fs.ModeSocket:
		return "socket"
	}
	return "device"
}

// unixMode is n's st_mode.
func (n *node) unixMode() uint16 {
	mode := uint16(n.mode.Perm())
	if n.mode&fs.ModeSticky != 0 {
		mode |= syscall.S_ISVTX
	}
	switch n.mode.Type() {
	case fs.ModeDir:
		return mode | syscall.S_IFDIR
	case fs.ModeSymlink:
		return mode | syscall.S_IFLNK
	}
	return mode | syscall.S_IFREG
}
