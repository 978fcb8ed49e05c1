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
	e := Exec{ExecKey: r.readExecKey()}
	e.Of, e.Allowed, e.Fault = r.readUint64(), r.readBool(), r.readText(MaxFault)
	e.Time, e.Pid, e.Parent = int64(r.readUint64()), int32(r.readUint32()), int32(r.readUint32())
	e.From, e.ParentPath, e.Cwd = r.readText(MaxPath), r.readText(MaxPath), r.readText(MaxPath)
	e.Lineage, e.Named = r.readUint32(), r.readText(MaxPath)
	e.ArgvDigest, e.ArgvCut = r.readDigest(), r.readBool()
	words, word, _ := ArgvBounds(e.Lineage)
	e.Argv, e.Env = r.readList(words, word), r.readList(MaxNames, MaxName)
	e.Vars, e.VarsCut = r.readList(MaxVars, MaxVar), r.readBool()
	if len(e.Files) == 0 || e.IsLoad() && len(e.Files) > 1 {
		r.bad = true
	}
	return e, r.checkEnd()
}

// DecodeEvent reads the body of an Event.
func DecodeEvent(body []byte) (Event, error) {
	r := reader{rest: body}
	e := Event{Generation: r.readUint32(), Event: r.readUint8(), Time: int64(r.readUint64()),
		Pid: int32(r.readUint32()), Parent: int32(r.readUint32())}
	e.Program, e.Path, e.Target = r.readText(MaxPath), r.readText(MaxPath), r.readText(MaxPath)
	e.Address, e.Call = r.readText(MaxPath), r.readText(MaxPath)
	e.Status, e.Errno, e.Unverified, e.Lineage = int32(r.readUint32()), r.readUint16(), r.readBool(), r.readUint32()
	if e.Event == 0 || e.Event >= events {
		r.bad = true
	}
	return e, r.checkEnd()
}

// DecodeMark reads the body of a Mark.
func DecodeMark(body []byte) (Mark, error) {
	r := reader{rest: body}
	m := Mark{Token: r.readUint64(), Generation: r.readUint32(), Alive: r.readUint32(), Stopping: r.readUint32(),
		Writes: r.readUint64(), Processes: r.readUint64(), Bytes: r.readUint64(), Dropped: r.readUint64()}
	return m, r.checkEnd()
}

// DecodeVerdict reads the body of a Verdict. Unless err is nil it allows nothing.
func DecodeVerdict(body []byte) (Verdict, error) {
	r := reader{rest: body}
	v := Verdict{Allow: r.readBool(), Keep: r.readBool(), Lineage: r.readUint32()}
	if err := r.checkEnd(); err != nil {
		return Verdict{}, err
	}
	return v, nil
}

// DecodeOrder reads the body of an Order.
func DecodeOrder(body []byte) (Order, error) {
	r := reader{rest: body}
	o := Order{Token: r.readUint64(), Act: Act(r.readUint8()), Generation: r.readUint32(), First: r.readUint32(),
		Memory: r.readUint64(), Disk: r.readUint64(), Control: r.readBool(),
		Pid: int32(r.readUint32()), Signal: int32(r.readUint32()), Until: r.readUint32(),
		Alone: r.readBool()}
	if o.Act == 0 || o.Act >= acts || o.Generation == None && o.Act != ActSave {
		r.bad = true
	}
	return o, r.checkEnd()
}

// DecodeReads reads the body of Reads.
func DecodeReads(body []byte) (Reads, error) {
	r := reader{rest: body}
	reads := Reads{Over: r.readBool()}
	for range r.readCount(maxPart) {
		reads.List = append(reads.List, Read{Path: r.readText(MaxPath), Content: r.readBool(), Optional: r.readBool()})
		if r.bad {
			return Reads{}, r.checkEnd()
		}
	}
	if reads.Over && len(reads.List) > 0 {
		r.bad = true
	}
	return reads, r.checkEnd()
}

// A reader takes fields off a body. After the first one that does not fit it is bad
// and gives zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) takeBytes(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) checkEnd() error {
	if r.bad || len(r.rest) > 0 {
		return frame.ErrMalformed
	}
	return nil
}

func (r *reader) readUint8() uint8 {
	if b := r.takeBytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) readUint16() uint16 {
	if b := r.takeBytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) readUint32() uint32 {
	if b := r.takeBytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) readUint64() uint64 {
	if b := r.takeBytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) readBool() bool {
	v := r.readUint8()
	if v > 1 {
		r.bad = true
	}
	return v == 1
}

func (r *reader) readText(limit int) string {
	n := int(r.readUint16())
	if n > limit {
		r.bad = true
	}
	return string(r.takeBytes(n))
}

func (r *reader) readCount(limit int) int {
	n := int(r.readUint16())
	if n > limit {
		r.bad = true
	}
	if r.bad {
		return 0
	}
	return n
}

func (r *reader) readList(limit, longest int) []string {
	var words []string
	for range r.readCount(limit) {
		words = append(words, r.readText(longest))
		if r.bad {
			return nil
		}
	}
	return words
}

func (r *reader) readDigest() (d [32]byte) {
	copy(d[:], r.takeBytes(32))
	return d
}

func (r *reader) readExecKey() ExecKey {
	k := ExecKey{Generation: r.readUint32(), Unverified: r.readBool(), Asked: r.readText(MaxPath)}
	for range r.readCount(MaxFiles) {
		k.Files = append(k.Files, r.readFile())
	}
	return k
}

func (r *reader) readFile() File {
	f := File{Loaded: r.readBool(), Named: r.readText(MaxLine), Arg: r.readText(MaxLine), Path: r.readText(MaxPath),
		Layer: FileLayer(r.readUint8()), Size: r.readUint64(), Digest: r.readDigest()}
	f.ELF = elf.Facts{Type: elf.Type(r.readUint8()), Interpreter: r.readText(elf.MaxText),
		Soname: r.readText(elf.MaxText), Loader: r.readBool()}
	if f.Layer >= layers || f.ELF.Type >= elf.Types {
		r.bad = true
	}
	return f
}
