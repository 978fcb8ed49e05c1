// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Hello appends a Hello.
func Hello(b []byte, seq uint64) []byte { return format.Append(b, KindHello, seq) }

// Append appends e as a message. Everything in e must keep to the bounds.
func (e *Exec) Append(b []byte, seq uint64) []byte {
	b = e.Key(format.Append(b, KindExec, seq))
	b = u64(b, e.Of)
	b = boolean(b, e.Allowed)
	b = text(b, e.Fault)
	b = u64(b, uint64(e.Time))
	b = u32(b, uint32(e.Pid))
	b = u32(b, uint32(e.Parent))
	for _, s := range []string{e.From, e.ParentPath, e.Cwd} {
		b = text(b, s)
	}
	b = u32(b, e.Lineage)
	b = text(b, e.Named)
	b = append(b, e.ArgvDigest[:]...)
	b = boolean(b, e.ArgvCut)
	b = list(b, e.Argv)
	b = list(b, e.Env)
	b = list(b, e.Vars)
	return boolean(b, e.VarsCut)
}

func (f *File) append(b []byte) []byte {
	b = boolean(b, f.Loaded)
	b = text(b, f.Named)
	b = text(b, f.Arg)
	b = text(b, f.Path)
	b = append(b, byte(f.Layer))
	b = u64(b, f.Size)
	b = append(b, f.Digest[:]...)
	b = append(b, byte(f.ELF.Type))
	b = text(b, f.ELF.Interpreter)
	b = text(b, f.ELF.Soname)
	return boolean(b, f.ELF.Loader)
}

// Key appends k as it is part of a message. What a Verdict that is kept is found by is this
// encoding and no other.
func (k *ExecKey) Key(b []byte) []byte {
	b = u32(b, k.Generation)
	b = boolean(b, k.Unverified)
	b = text(b, k.Asked)
	b = u16(b, len(k.Files))
	for i := range k.Files {
		b = k.Files[i].append(b)
	}
	return b
}

// Append appends e as a message.
func (e *Event) Append(b []byte, seq uint64) []byte {
	b = format.Append(b, KindEvent, seq)
	b = u32(b, e.Generation)
	b = append(b, e.Event)
	b = u64(b, uint64(e.Time))
	b = u32(b, uint32(e.Pid))
	b = u32(b, uint32(e.Parent))
	for _, s := range []string{e.Program, e.Path, e.Target, e.Address, e.Call} {
		b = text(b, s)
	}
	b = u32(b, uint32(e.Status))
	b = u16(b, int(e.Errno))
	return u32(boolean(b, e.Unverified), e.Lineage)
}

// Append appends m as a message.
func (m *Mark) Append(b []byte, seq uint64) []byte {
	b = format.Append(b, KindMark, seq)
	b = u64(b, m.Token)
	b = u32(b, m.Generation)
	b = u32(b, m.Alive)
	b = u64(b, m.Writes)
	b = u64(b, m.Processes)
	b = u64(b, m.Bytes)
	return u64(b, m.Dropped)
}

// Append appends v as a message that answers the Exec seq.
func (v Verdict) Append(b []byte, seq uint64) []byte {
	return u32(boolean(boolean(format.Append(b, KindVerdict, seq), v.Allow), v.Keep), v.Lineage)
}

// Append appends o as a message.
func (o Order) Append(b []byte, seq uint64) []byte {
	b = append(u64(format.Append(b, KindOrder, seq), o.Token), byte(o.Act))
	b = u64(u64(u32(u32(b, o.Generation), o.First), o.Memory), o.Disk)
	return u32(u32(u32(boolean(b, o.Control), uint32(o.Pid)), uint32(o.Signal)), o.Until)
}

// Append appends r as a message.
func (r Reads) Append(b []byte, seq uint64) []byte {
	b = boolean(format.Append(b, KindReads, seq), r.Over)
	b = u16(b, len(r.List))
	for _, read := range r.List {
		b = boolean(boolean(text(b, read.Path), read.Content), read.Optional)
	}
	return b
}

// Bounds returns how many words of argv a message about a process of this lineage
// holds at most, how many bytes of one, and how many of all together.
func Bounds(lineage uint32) (words, word, argv int) {
	if IsText(lineage) {
		return TextWords, TextWord, TextArgv
	}
	return MaxWords, MaxWord, MaxArgv
}

// Cut returns the first limit bytes of s.
func Cut(s string, limit int) string {
	if len(s) > limit {
		return s[:limit]
	}
	return s
}

func u16(b []byte, v int) []byte    { return binary.LittleEndian.AppendUint16(b, uint16(v)) }
func u32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func u64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func text(b []byte, s string) []byte {
	s = Cut(s, 0xffff)
	return append(u16(b, len(s)), s...)
}

func list(b []byte, words []string) []byte {
	b = u16(b, len(words))
	for _, w := range words {
		b = text(b, w)
	}
	return b
}

func boolean(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
