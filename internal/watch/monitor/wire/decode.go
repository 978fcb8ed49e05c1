// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/frame"
)

// DecodeExec reads the body of an Exec.
func DecodeExec(body []byte) (Exec, error) {
	r := reader{rest: body}
	e := Exec{ExecKey: r.key()}
	e.Of, e.Allowed, e.Fault = r.u64(), r.boolean(), r.text(MaxFault)
	e.Time, e.Pid, e.Parent = int64(r.u64()), int32(r.u32()), int32(r.u32())
	e.From, e.ParentPath, e.Cwd = r.text(MaxPath), r.text(MaxPath), r.text(MaxPath)
	e.Lineage, e.Named = r.u32(), r.text(MaxPath)
	e.ArgvDigest, e.ArgvCut = r.digest(), r.boolean()
	words, word, _ := Bounds(e.Lineage)
	e.Argv, e.Env = r.list(words, word), r.list(MaxNames, MaxName)
	e.Vars, e.VarsCut = r.list(MaxVars, MaxVar), r.boolean()
	if len(e.Files) == 0 || e.Loads() && len(e.Files) > 1 {
		r.bad = true
	}
	return e, r.end()
}

// DecodeEvent reads the body of an Event.
func DecodeEvent(body []byte) (Event, error) {
	r := reader{rest: body}
	e := Event{Generation: r.u32(), Event: r.u8(), Time: int64(r.u64()), Pid: int32(r.u32()), Parent: int32(r.u32())}
	e.Program, e.Path, e.Target = r.text(MaxPath), r.text(MaxPath), r.text(MaxPath)
	e.Address, e.Call = r.text(MaxPath), r.text(MaxPath)
	e.Status, e.Errno, e.Unverified, e.Lineage = int32(r.u32()), r.u16(), r.boolean(), r.u32()
	if e.Event == 0 || e.Event >= events {
		r.bad = true
	}
	return e, r.end()
}

// DecodeMark reads the body of a Mark.
func DecodeMark(body []byte) (Mark, error) {
	r := reader{rest: body}
	m := Mark{Token: r.u64(), Generation: r.u32(), Alive: r.u32(), Writes: r.u64(), Processes: r.u64(), Bytes: r.u64(), Dropped: r.u64()}
	return m, r.end()
}

// DecodeVerdict reads the body of a Verdict. Unless err is nil it allows nothing.
func DecodeVerdict(body []byte) (Verdict, error) {
	r := reader{rest: body}
	v := Verdict{Allow: r.boolean(), Keep: r.boolean(), Lineage: r.u32()}
	if err := r.end(); err != nil {
		return Verdict{}, err
	}
	return v, nil
}

// DecodeOrder reads the body of an Order.
func DecodeOrder(body []byte) (Order, error) {
	r := reader{rest: body}
	o := Order{Token: r.u64(), Act: Act(r.u8()), Generation: r.u32(), First: r.u32(), Memory: r.u64(), Disk: r.u64(), Control: r.boolean(),
		Pid: int32(r.u32()), Signal: int32(r.u32()), Until: r.u32()}
	if o.Act == 0 || o.Act >= acts || o.Generation == 0 {
		r.bad = true
	}
	return o, r.end()
}

// DecodeReads reads the body of Reads.
func DecodeReads(body []byte) (Reads, error) {
	r := reader{rest: body}
	reads := Reads{Over: r.boolean()}
	for range r.count(maxPart) {
		reads.List = append(reads.List, Read{Path: r.text(MaxPath), Content: r.boolean(), Optional: r.boolean()})
		if r.bad {
			return Reads{}, r.end()
		}
	}
	if reads.Over && len(reads.List) > 0 {
		r.bad = true
	}
	return reads, r.end()
}

// A reader takes fields off a body. After the first one that does not fit it is bad
// and gives zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) end() error {
	if r.bad || len(r.rest) > 0 {
		return frame.ErrMalformed
	}
	return nil
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) boolean() bool {
	v := r.u8()
	if v > 1 {
		r.bad = true
	}
	return v == 1
}

func (r *reader) text(limit int) string {
	n := int(r.u16())
	if n > limit {
		r.bad = true
	}
	return string(r.take(n))
}

func (r *reader) count(limit int) int {
	n := int(r.u16())
	if n > limit {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return n
}

func (r *reader) list(limit, longest int) []string {
	var words []string
	for range r.count(limit) {
		words = append(words, r.text(longest))
		if r.bad {
			return nil
		}
	}
	return words
}

func (r *reader) digest() (d [32]byte) {
	copy(d[:], r.take(32))
	return d
}

func (r *reader) key() ExecKey {
	k := ExecKey{Generation: r.u32(), Unverified: r.boolean(), Asked: r.text(MaxPath)}
	for range r.count(MaxFiles) {
		k.Files = append(k.Files, r.file())
	}
	return k
}

func (r *reader) file() File {
	f := File{Loaded: r.boolean(), Named: r.text(MaxLine), Arg: r.text(MaxLine), Path: r.text(MaxPath), Layer: Layer(r.u8()), Size: r.u64(), Digest: r.digest()}
	f.ELF = elf.Facts{Type: elf.Type(r.u8()), Interpreter: r.text(elf.MaxText), Soname: r.text(elf.MaxText), Loader: r.boolean()}
	if f.Layer >= layers || f.ELF.Type >= elf.Types {
		r.bad = true
	}
	return f
}
