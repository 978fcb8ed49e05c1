// SPDX-License-Identifier: Apache-2.0

// Package elf determines what kind of program a file is from its ELF headers, as
// gVisor's loader reads them, and its dynamic section.
//
// A file may come from an attacker. Reading allocates at most a few KiB, has no unbounded
// loop, and never fails: what cannot be read is omitted. The headers decide what the
// kernel does with the file, so Type and Interpreter are facts. Only the dynamic loader
// uses the dynamic section, so an attacker who creates a file may write anything into it.
package elf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
)

// Facts describe one file. The zero Facts describe a file that gVisor does not start as
// an ELF program.
type Facts struct {
	Type Type
	// Interpreter is the path of the dynamic loader that the kernel loads with the
	// program and starts first, cut to MaxText; "" for a program without one.
	Interpreter string
	// Soname is the name by which programs refer to a library.
	Soname string
	// Loader reports that the file is a library that can be started directly, as a
	// dynamic loader can: ET_DYN without an interpreter, and with a soname, symbol
	// versions or symbol names. Statically linked programs have none of them, or are
	// marked as programs (DF_1_PIE).
	Loader bool
}

// IsProgram reports whether the file is made to be started. A library that can be started, too, as a
// C library, has a soname.
func (f Facts) IsProgram() bool {
	return f.Type == Exec || f.Type == Dyn && f.Soname == "" && !f.Loader
}

// A Type is the type of an ELF file.
type Type uint8

// The types.
const (
	None Type = iota // not a 64-bit little-endian ELF program
	Exec             // ET_EXEC: loaded at its own address
	Dyn              // ET_DYN: loaded at any address; most programs, and all libraries
	Types
)

// MaxText bounds Interpreter and Soname.
const MaxText = 127

// Unreadable is the Interpreter of a file whose interpreter has no readable name;
// gVisor does not start such a file.
const Unreadable = "?"

const (
	headerSize = 64
	progSize   = 56
	maxProgs   = 4096 / progSize // the maximum that gVisor loads
	dynSize    = 16
	maxDyns    = 512

	ptLoad, ptDynamic, ptInterp = 1, 2, 3

	dtNull, dtStrtab, dtStrsz, dtSoname, dtFlags1, dtVerdef = 0, 5, 10, 14, 0x6ffffffb, 0x6ffffffc

	df1Pie = 0x08000000
)

// A prog is a program header.
type prog struct {
	kind               uint32
	off, vaddr, filesz uint64
}

// Read returns the facts of the file r.
func Read(r io.ReaderAt) Facts {
	header := readExactly(r, 0, headerSize)
	var f Facts
	if header == nil || !bytes.HasPrefix(header, []byte("\x7fELF\x02\x01\x01")) {
		return f
	}
	switch binary.LittleEndian.Uint16(header[16:]) {
	case 2:
		f.Type = Exec
	case 3:
		f.Type = Dyn
	default:
		return f
	}
	progs, ok := readProgs(r, header)
	if !ok {
		return Facts{}
	}
	for _, p := range progs {
		if p.kind == ptInterp { // the kernel uses the last one
			f.Interpreter = cmp.Or(readString(r, p.off, p.filesz), Unreadable)
		}
	}
	soname, library := readDynamic(r, progs)
	f.Soname, f.Loader = soname, library && f.Type == Dyn && f.Interpreter == ""
	return f
}

func readProgs(r io.ReaderAt, header []byte) ([]prog, bool) {
	size, count := binary.LittleEndian.Uint16(header[54:]), int(binary.LittleEndian.Uint16(header[56:]))
	if size != progSize || count == 0 || count > maxProgs {
		return nil, false
	}
	table := readExactly(r, binary.LittleEndian.Uint64(header[32:]), count*progSize)
	if table == nil {
		return nil, false
	}
	progs := make([]prog, count)
	for i := range progs {
		b := table[i*progSize:]
		progs[i] = prog{kind: binary.LittleEndian.Uint32(b), off: binary.LittleEndian.Uint64(b[8:]),
			vaddr: binary.LittleEndian.Uint64(b[16:]), filesz: binary.LittleEndian.Uint64(b[32:])}
	}
	return progs, true
}

// readDynamic returns the soname, and whether the dynamic section is that of a library.
func readDynamic(r io.ReaderAt, progs []prog) (soname string, library bool) {
	var strtab, name uint64
	symbols, program := false, false
	for _, p := range progs {
		if p.kind != ptDynamic {
			continue
		}
		table := readUpTo(r, p.off, min(p.filesz, maxDyns*dynSize)) // the loader ignores the size
		for ; len(table) >= dynSize; table = table[dynSize:] {
			tag, value := binary.LittleEndian.Uint64(table), binary.LittleEndian.Uint64(table[8:])
			if tag == dtNull {
				break
			}
			switch tag {
			case dtStrtab:
				strtab = value
			case dtSoname:
				name, library = value, true
			case dtVerdef:
				library = true
			case dtStrsz:
				symbols = value > 1 // a table without names has one byte
			case dtFlags1:
				program = value&df1Pie != 0
			}
		}
	}
	if at, ok := fileOffset(progs, strtab+name); ok && name != 0 {
		soname = readString(r, at, MaxText+1)
	}
	return soname, library || symbols && !program
}

// fileOffset returns the file offset of the byte that is loaded at addr.
func fileOffset(progs []prog, addr uint64) (uint64, bool) {
	for _, p := range progs {
		if p.kind == ptLoad && addr >= p.vaddr && addr-p.vaddr < p.filesz {
			return p.off + (addr - p.vaddr), true
		}
	}
	return 0, false
}

// readString returns the string at off, which ends at a zero byte or after size bytes.
func readString(r io.ReaderAt, off, size uint64) string {
	b, _, _ := bytes.Cut(readUpTo(r, off, min(size, MaxText)), []byte{0})
	return string(b)
}

// readExactly returns size bytes at off, or nil if the file has fewer.
func readExactly(r io.ReaderAt, off uint64, size int) []byte {
	if b := readUpTo(r, off, uint64(size)); len(b) == size {
		return b
	}
	return nil
}

// readUpTo returns up to size bytes at off, as many as the file has.
func readUpTo(r io.ReaderAt, off, size uint64) []byte {
	if off >= 1<<62 {
		return nil
	}
	b := make([]byte, size)
	n, _ := r.ReadAt(b, int64(off))
	return b[:n]
}
