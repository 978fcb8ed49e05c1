// SPDX-License-Identifier: Apache-2.0

package image

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
)

const (
	superOffset   = 1024
	superMagic    = 0xe0f5e1e2
	featureSum    = 1 // the superblock has a checksum
	featureMtime  = 2 // inodes have the time of the last modification
	blockBits     = 12
	inodeSize     = 64
	inodeSlots    = inodeSize / 32 // inodes are numbered in units of 32 bytes
	inodeExtended = 1              // format: extended layout, plain data
	direntSize    = 12
)

// Types of files in directories.
const (
	typeRegular = 1
	typeDir     = 2
	typeLink    = 7
)

// writeMetadata writes everything that follows the files' contents, and the superblock.
func (w *Writer) writeMetadata() error {
	nodes := w.numberInodes()
	if err := w.writeData(w.root, w.root); err != nil {
		return err
	}
	size := int64(len(nodes)+1) * inodeSize
	meta, err := w.out.reserveBlock(size)
	if err != nil {
		return err
	}
	table := make([]byte, inodeSize, size) // number 0 is not used
	for _, n := range nodes {
		table = n.appendInode(table)
	}
	if _, err := w.out.writePadded(table); err != nil {
		return err
	}
	if err := w.out.buffer.Flush(); err != nil {
		return err
	}
	if err := w.file.Truncate(w.out.offset); err != nil { // it may end in a hole
		return err
	}
	_, err = w.file.WriteAt(encodeSuperblock(meta, uint32(w.out.offset/blockSize), len(nodes)), 0)
	return err
}

// numberInodes gives every inode its number, parents first and names sorted, and lists them.
func (w *Writer) numberInodes() []*node {
	nodes := make([]*node, 0, w.count)
	var visit func(n *node)
	visit = func(n *node) {
		nodes = append(nodes, n)
		n.number = uint64(len(nodes))
		for _, name := range n.sortedNames() {
			if child := n.children[name]; child.number == 0 {
				visit(child)
			}
		}
	}
	visit(w.root)
	return nodes
}

func (n *node) sortedNames() []string { return slices.Sorted(maps.Keys(n.children)) }

func (n *node) inodeID() uint64 { return n.number * inodeSlots }

// writeData writes n's directory or target, and everything below it.
func (w *Writer) writeData(n, parent *node) (err error) {
	var data []byte
	switch {
	case n.isDir():
		data = n.directoryBlocks(parent)
	case n.target != "":
		data = []byte(n.target)
	default:
		return nil
	}
	n.size = int64(len(data))
	if n.block, err = w.out.writePadded(data); err != nil {
		return err
	}
	for _, name := range n.sortedNames() {
		if err := w.writeData(n.children[name], n); err != nil {
			return err
		}
	}
	return nil
}

// A dirent is one name in a directory.
type dirent struct {
	name string
	node *node
}

// directoryBlocks returns the blocks of a directory. Its names are sorted as bytes, "." and
// ".." among them; each block has as many as fit.
func (n *node) directoryBlocks(parent *node) []byte {
	list := []dirent{{".", n}, {"..", parent}}
	for name, child := range n.children {
		list = append(list, dirent{name, child})
	}
	slices.SortFunc(list, func(a, b dirent) int { return strings.Compare(a.name, b.name) })
	var data []byte
	for len(list) > 0 {
		data = append(data, make([]byte, int(roundUp(int64(len(data))))-len(data))...)
		fit := countFitting(list)
		data = appendDirents(data, list[:fit])
		list = list[fit:]
	}
	return data
}

// countFitting returns how many of list fit into a block.
func countFitting(list []dirent) int {
	used := 0
	for i, d := range list {
		if used += direntSize + len(d.name); used > blockSize {
			return i
		}
	}
	return len(list)
}

func appendDirents(data []byte, list []dirent) []byte {
	offset := len(list) * direntSize
	for _, d := range list {
		data = binary.LittleEndian.AppendUint64(data, d.node.inodeID())
		data = binary.LittleEndian.AppendUint16(data, uint16(offset))
		data = append(data, d.node.direntType(), 0)
		offset += len(d.name)
	}
	for _, d := range list {
		data = append(data, d.name...)
	}
	return data
}

func (n *node) direntType() byte {
	switch {
	case n.isDir():
		return typeDir
	case n.target != "":
		return typeLink
	}
	return typeRegular
}

// linkCount is n's st_nlink.
func (n *node) linkCount() uint32 {
	if !n.isDir() {
		return 1 + n.links
	}
	count := uint32(2)
	for _, child := range n.children {
		if child.isDir() {
			count++
		}
	}
	return count
}

func (n *node) appendInode(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, inodeExtended)
	b = le.AppendUint16(b, 0) // extended attributes
	b = le.AppendUint16(b, n.unixMode())
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, uint64(n.size))
	b = le.AppendUint32(b, n.block)
	b = le.AppendUint32(b, uint32(n.number))
	b = le.AppendUint32(b, n.uid)
	b = le.AppendUint32(b, n.gid)
	b = le.AppendUint64(b, uint64(n.modTime.Unix()))
	b = le.AppendUint32(b, uint32(n.modTime.Nanosecond()))
	b = le.AppendUint32(b, n.linkCount())
	return append(b, make([]byte, 16)...)
}

// encodeSuperblock returns block 0. Its checksum covers what follows superOffset.
func encodeSuperblock(meta, blocks uint32, inodes int) []byte {
	b := make([]byte, blockSize)
	s, le := b[superOffset:], binary.LittleEndian
	le.PutUint32(s[0:], superMagic)
	le.PutUint32(s[8:], featureSum|featureMtime)
	s[12] = blockBits
	le.PutUint16(s[14:], inodeSlots) // the root is inode 1
	le.PutUint64(s[16:], uint64(inodes))
	le.PutUint32(s[36:], blocks)
	le.PutUint32(s[40:], meta)
	le.PutUint32(s[4:], ^crc32.Checksum(s, crc32.MakeTable(crc32.Castagnoli)))
	return b
}
