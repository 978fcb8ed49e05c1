// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/frame"
)

func fullExec() Exec {
	return Exec{
		ExecKey: ExecKey{Generation: 7, Unverified: true, Asked: "/workspace/x", Files: []File{{Path: "/workspace/\xff.sh", Layer: LayerWorkspace, Size: 9, Digest: [32]byte{1}}, {Named: "/bin/sh", Arg: "-e", Path: "/usr/bin/dash", Layer: LayerRootfs, Size: 1 << 40,
			ELF: elf.Facts{Type: elf.Dyn, Interpreter: "/lib/ld.so", Soname: "x", Loader: true}}, {Loaded: true, Path: "/tmp/ld.so"}}},
		Of: 3, Allowed: true, Time: 1 << 60, Pid: 12, Parent: -1, From: "/usr/bin/bash", ParentPath: "/x", Cwd: "/workspace",
		Named: "./x", ArgvDigest: [32]byte{31: 9}, ArgvCut: true, Argv: []string{"", "a\x00b", "\xfe"}, Env: []string{"LD_PRELOAD"},
		Lineage: 3, Vars: []string{"A=", "B=\xff"}, VarsCut: true,
	}
}

func fullEvent() Event {
	return Event{Generation: 1, Event: EventRename, Time: 5, Pid: 1, Parent: 2, Program: "/p", Path: "/a\nb", Target: "/c", Address: "tcp 192.0.2.1:443", Call: "unshare", Status: 9, Errno: 13, Unverified: true, Lineage: 5}
}

func TestRoundTrip(t *testing.T) {
	exec, event := fullExec(), fullEvent()
	for _, full := range []any{exec, event} {
		for field, value := range reflect.ValueOf(full).Fields() {
			if value.IsZero() && field.Name != "Fault" {
				t.Errorf("%T.%s is zero: set it above, encode and decode it", full, field.Name)
			}
		}
	}
	mark := Mark{Token: 1, Generation: 2, Alive: 7, Writes: 3, Processes: 4, Bytes: 5, Dropped: 6}
	verdict := Verdict{Allow: true, Lineage: 1 << 31}
	order := Order{Token: 9, Act: ActSignal, Generation: 8, First: LineageFirst, Memory: 1 << 31, Disk: 1 << 40, Control: true, Pid: 7, Signal: 2, Until: 6}
	reads := Reads{List: []Read{{Path: "."}, {Path: "a/\xff", Content: true}, {Path: "b", Optional: true}}}
	tests := []struct {
		name    string
		kind    Kind
		message []byte
		decode  func([]byte) (any, error)
		want    any
	}{
		{"exec", KindExec, exec.Append(nil, 5), func(b []byte) (any, error) { return DecodeExec(b) }, exec},
		{"event", KindEvent, event.Append(nil, 5), func(b []byte) (any, error) { return DecodeEvent(b) }, event},
		{"mark", KindMark, mark.Append(nil, 5), func(b []byte) (any, error) { return DecodeMark(b) }, mark},
		{"verdict", KindVerdict, verdict.Append(nil, 5), func(b []byte) (any, error) { return DecodeVerdict(b) }, verdict},
		{"order", KindOrder, order.Append(nil, 5), func(b []byte) (any, error) { return DecodeOrder(b) }, order},
		{"reads", KindReads, reads.Append(nil, 5), func(b []byte) (any, error) { return DecodeReads(b) }, reads},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, body, err := Open(test.message)
			if err != nil || h.Kind != test.kind || h.Seq != 5 {
				t.Fatalf("header %+v, %v", h, err)
			}
			got, err := test.decode(body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
			for n := range body {
				if _, err := test.decode(body[:n]); err == nil {
					t.Fatalf("the first %d of %d bytes decode", n, len(body))
				}
			}
			if _, err := test.decode(append(bytes.Clone(body), 0)); err == nil {
				t.Error("a byte too many decodes")
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	big := fullExec()
	big.Files[0].Layer = layers
	kind := fullExec()
	kind.Files[1].ELF.Type = elf.Types
	soname := fullExec()
	soname.Files[1].ELF.Soname = strings.Repeat("x", elf.MaxText+1)
	none := fullExec()
	none.Files = nil
	loads := fullExec()
	loads.Files[0].Loaded = true
	many := fullExec()
	many.Files = make([]File, MaxFiles+1)
	words, long := fullExec(), fullExec()
	words.Argv, long.Argv = make([]string, TextWords+1), []string{strings.Repeat("x", TextWord+1)}
	programs, longer := fullExec(), fullExec()
	programs.Lineage, programs.Argv = LineageProgram, make([]string, MaxWords+1)
	longer.Lineage, longer.Argv = LineageProgram, []string{strings.Repeat("x", MaxWord+1)}
	vars, value := fullExec(), fullExec()
	vars.Vars, value.Vars = make([]string, MaxVars+1), []string{strings.Repeat("x", MaxVar+1)}
	for name, e := range map[string]Exec{"layer": big, "ELF type": kind, "long soname": soname, "no file": none, "files after a loaded one": loads, "files": many, "words": words, "long word": long,
		"a program's words": programs, "a program's long word": longer, "variables": vars, "long variable": value} {
		_, body, err := Open(e.Append(nil, 1))
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := DecodeExec(body); err == nil {
			t.Errorf("%s: decodes", name)
		}
	}
	if v, err := DecodeVerdict([]byte{2, 0}); err == nil || v.Allow {
		t.Errorf("a verdict of 2 decodes to %+v, %v", v, err)
	}
	if v, err := DecodeVerdict([]byte{1, 0, 0}); err == nil || v.Allow {
		t.Errorf("a long verdict decodes to %+v, %v", v, err)
	}
	for name, message := range map[string][]byte{
		"empty": nil, "short": make([]byte, frame.HeaderSize-1), "version": append([]byte{Version + 1}, make([]byte, 20)...),
		"long": append([]byte{Version}, make([]byte, MaxMessage)...),
	} {
		if _, _, err := Open(message); err == nil {
			t.Errorf("%s: opens", name)
		}
	}
}

// The largest Exec that keeps to the bounds fits one message.
func TestLargest(t *testing.T) {
	path := strings.Repeat("p", MaxPath)
	e := Exec{ExecKey: ExecKey{Asked: path}, Fault: path[:MaxFault], Lineage: 1, Named: path, From: path, ParentPath: path, Cwd: path}
	for range MaxFiles {
		e.Files = append(e.Files, File{Named: path[:MaxLine], Arg: path[:MaxLine], Path: path, ELF: elf.Facts{Interpreter: path[:elf.MaxText], Soname: path[:elf.MaxText]}})
	}
	for range TextWords {
		e.Argv = append(e.Argv, path[:TextArgv/TextWords])
	}
	for range MaxVars {
		e.Vars = append(e.Vars, path[:MaxEnv/MaxVars])
	}
	for range MaxNames {
		e.Env = append(e.Env, path[:MaxName])
	}
	if n := len(e.Append(nil, 1)); n > MaxMessage {
		t.Errorf("%d bytes, more than %d", n, MaxMessage)
	}
}

func FuzzDecode(f *testing.F) {
	exec, event := fullExec(), fullEvent()
	for _, seed := range [][]byte{exec.Append(nil, 1), event.Append(nil, 2), (&Mark{Token: 1}).Append(nil, 3), Verdict{Keep: true}.Append(nil, 4), Order{Act: ActBegin, Generation: 9}.Append(nil, 5), AppendHello(nil, 1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		h, body, err := Open(message)
		if err != nil {
			return
		}
		var again []byte
		switch h.Kind {
		case KindExec:
			if e, err := DecodeExec(body); err == nil {
				again = e.Append(nil, h.Seq)
			}
		case KindEvent:
			if e, err := DecodeEvent(body); err == nil {
				again = e.Append(nil, h.Seq)
			}
		case KindMark:
			if m, err := DecodeMark(body); err == nil {
				again = m.Append(nil, h.Seq)
			}
		case KindVerdict:
			if v, err := DecodeVerdict(body); err == nil {
				again = v.Append(nil, h.Seq)
			}
		case KindOrder:
			if o, err := DecodeOrder(body); err == nil {
				again = o.Append(nil, h.Seq)
			}
		}
		if again != nil && !bytes.Equal(again, message) {
			t.Fatalf("decodes and encodes to other bytes:\n%x\n%x", message, again)
		}
	})
}

// beyondKey are the fields of an Exec on which no reusable Verdict depends, and why.
var beyondKey = map[string]string{
	"Of": "says which Verdict was used", "Allowed": "is that Verdict", "Fault": "has no Verdict", "Time": "is only recorded",
	"Pid": "is only recorded", "Parent": "only says which process is a command's first, which belongs to a text",
	"From": "rules that use it give no reusable answer", "ParentPath": "as From", "Cwd": "as From; Asked is absolute",
	"Lineage": "LineageProgram, or not used for a loaded file", "Named": "used for a text's process only",
	"ArgvDigest": "as From", "ArgvCut": "as From", "Argv": "as From", "Env": "is empty", "Vars": "sent for a text's process only", "VarsCut": "as Vars",
}

// Every field of an Exec is either part of the key, which changes with it, or is known not to
// be: a new field needs a decision.
func TestExecKey(t *testing.T) {
	fields := reflect.TypeFor[Exec]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if _, decided := beyondKey[name]; decided == (name == "ExecKey") {
			t.Errorf("%s is in the key and beyond it, or in neither", name)
		}
	}
	seen := map[string]string{}
	distinct := func(name string, e Exec) {
		key := string(e.AppendKey(nil))
		if other, known := seen[key]; known {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[key] = name
		if message := e.Append(nil, 1); !bytes.Contains(message, []byte(key)) {
			t.Errorf("%s: the key is not encoded in the message", name)
		}
	}
	distinct("full", fullExec())
	vary := func(prefix string, of func(*Exec) reflect.Value) {
		first := fullExec()
		for i := range of(&first).NumField() {
			e := fullExec()
			field := of(&e).Field(i)
			if k := field.Kind(); k != reflect.Struct && k != reflect.Slice { // whose fields vary below
				change(t, field)
				distinct(prefix+of(&e).Type().Field(i).Name, e)
			}
		}
	}
	vary("key.", func(e *Exec) reflect.Value { return reflect.ValueOf(&e.ExecKey).Elem() })
	vary("file.", func(e *Exec) reflect.Value { return reflect.ValueOf(&e.Files[1]).Elem() })
	vary("elf.", func(e *Exec) reflect.Value { return reflect.ValueOf(&e.Files[1].ELF).Elem() })
	short := fullExec()
	short.Files = short.Files[:2]
	distinct("fewer files", short)
	if len(seen) != 1+3+7+4+1 {
		t.Errorf("%d variants", len(seen))
	}
}

// change gives a field another value.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() ^ 1)
	case reflect.Array:
		v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	default:
		t.Fatalf("a field of kind %s: vary it here", v.Kind())
	}
}
