// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// AppendHello appends a Hello.
func AppendHello(b []byte, seq uint64) []byte { return format.Append(b, KindHello, seq) }

// Append appends e as a message. Everything in e must keep to the bounds.
func (e *Exec) Append(b []byte, seq uint64) []byte {
	b = e.AppendKey(format.Append(b, KindExec, seq))
	b = appendUint64(b, e.Of)
	b = appendBool(b, e.Allowed)
	b = appendText(b, e.Fault)
	b = appendUint64(b, uint64(e.Time))
	b = appendUint32(b, uint32(e.Pid))
	b = appendUint32(b, uint32(e.Parent))
	for _, s := range []string{e.From, e.ParentPath, e.Cwd} {
		b = appendText(b, s)
	}
	b = appendUint32(b, e.Lineage)
	b = appendText(b, e.Named)
	b = append(b, e.ArgvDigest[:]...)
	b = appendBool(b, e.ArgvCut)
	b = appendList(b, e.Argv)
	b = appendList(b, e.Env)
	b = appendList(b, e.Vars)
	return appendBool(b, e.VarsCut)
}

func (f *File) appendTo(b []byte) []byte {
	b = appendBool(b, f.Loaded)
	b = appendText(b, f.Named)
	b = appendText(b, f.Arg)
	b = appendText(b, f.Path)
	b = append(b, byte(f.Layer))
	b = appendUint64(b, f.Size)
	b = append(b, f.Digest[:]...)
	b = append(b, byte(f.ELF.Type))
	b = appendText(b, f.ELF.Interpreter)
	b = appendText(b, f.ELF.Soname)
	return appendBool(b, f.ELF.Loader)
}

// AppendKey appends k as it is part of a message. What a Verdict that is kept is found by is this
// encoding and no other.
func (k *ExecKey) AppendKey(b []byte) []byte {
	b = appendUint32(b, k.Generation)
	b = appendBool(b, k.Unverified)
	b = appendText(b, k.Asked)
	b = appendUint16(b, len(k.Files))
	for i := range k.Files {
		b = k.Files[i].appendTo(b)
	}
	return b
}

// Append appends e as a message.
func (e *Event) Append(b []byte, seq uint64) []byte {
	b = format.Append(b, KindEvent, seq)
	b = appendUint32(b, e.Generation)
	b = append(b, e.Event)
	b = appendUint64(b, uint64(e.Time))
	b = appendUint32(b, uint32(e.Pid))
	b = appendUint32(b, uint32(e.Parent))
	for _, s := range []string{e.Program, e.Path, e.Target, e.Address, e.Call} {
		b = appendText(b, s)
	}
	b = appendUint32(b, uint32(e.Status))
	b = appendUint16(b, int(e.Errno))
	return appendUint32(appendBool(b, e.Unverified), e.Lineage)
}

// Append appends m as a message.
func (m *Mark) Append(b []byte, seq uint64) []byte {
	b = format.Append(b, KindMark, seq)
	b = appendUint64(b, m.Token)
	b = appendUint32(b, m.Generation)
	b = appendUint32(appendUint32(b, m.Alive), m.Stopping)
	b = appendUint64(b, m.Writes)
	b = appendUint64(b, m.Processes)
	b = appendUint64(b, m.Bytes)
	return appendUint64(b, m.Dropped)
}

// Append appends v as a message that answers the Exec seq.
func (v Verdict) Append(b []byte, seq uint64) []byte {
	return appendUint32(appendBool(appendBool(format.Append(b, KindVerdict, seq), v.Allow), v.Keep), v.Lineage)
}

// Append appends o as a message.
func (o Order) Append(b []byte, seq uint64) []byte {
	b = append(appendUint64(format.Append(b, KindOrder, seq), o.Token), byte(o.Act))
	b = appendUint64(appendUint64(appendUint32(appendUint32(b, o.Generation), o.First), o.Memory), o.Disk)
	b = appendUint32(appendUint32(appendUint32(appendBool(b, o.Control), uint32(o.Pid)), uint32(o.Signal)), o.Until)
	return appendBool(b, o.Alone)
}

// Append appends r as a message.
func (r Reads) Append(b []byte, seq uint64) []byte {
	b = appendBool(format.Append(b, KindReads, seq), r.Over)
	b = appendUint16(b, len(r.List))
	for _, read := range r.List {
		b = appendBool(appendBool(appendText(b, read.Path), read.Content), read.Optional)
	}
	return b
}

// ArgvBounds returns how many words of argv a message about a process of this lineage
// holds at most, how many bytes of one, and how many of all together.
func ArgvBounds(lineage uint32) (words, word, argv int) {
	if IsText(lineage) {
		return TextWords, TextWord, TextArgv
	}
	return MaxWords, MaxWord, MaxArgv
}

// Truncate returns the first limit bytes of s.
func Truncate(s string, limit int) string {
	if len(s) > limit {
		return s[:limit]
	}
	return s
}

func appendUint16(b []byte, v int) []byte    { return binary.LittleEndian.AppendUint16(b, uint16(v)) }
func appendUint32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }
func appendUint64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func appendText(b []byte, s string) []byte {
	s = Truncate(s, 0xffff)
	return append(appendUint16(b, len(s)), s...)
}

func appendList(b []byte, words []string) []byte {
	b = appendUint16(b, len(words))
	for _, w := range words {
		b = appendText(b, w)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
