// SPDX-License-Identifier: Apache-2.0

package elf

import (
	"bytes"
	debug "debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loaderOf returns the host's dynamic loader, taken from the interpreter of a
// program on the host.
func loaderOf(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open("/bin/bash")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	interpreter := Read(f).Interpreter
	data, err := os.ReadFile(interpreter)
	if err != nil {
		t.Fatalf("bash asks for the interpreter %q: %v", interpreter, err)
	}
	return data
}

func TestLoader(t *testing.T) {
	data := loaderOf(t)
	got := Read(bytes.NewReader(data))
	if got.Type != Dyn || !got.Loader || got.IsProgram() || got.Interpreter != "" || !strings.Contains(got.Soname, ".so") {
		t.Errorf("the host's loader: %+v", got)
	}
	longer := Read(bytes.NewReader(append(bytes.Clone(data), "changed"...)))
	if longer != got {
		t.Errorf("a longer copy: %+v, want %+v", longer, got)
	}
	named := bytes.ReplaceAll(data, []byte(got.Soname), bytes.Repeat([]byte("x"), len(got.Soname)))
	if f := Read(bytes.NewReader(named)); !f.Loader || f.Soname == got.Soname {
		t.Errorf("a copy with another soname: %+v", f)
	}
}

// TestPrograms compares with the standard library's result for the host's programs.
func TestPrograms(t *testing.T) {
	paths, err := filepath.Glob("/usr/bin/[a-g]*")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, path := range append(paths, "/proc/self/exe") {
		f, err := debug.Open(path)
		if err != nil {
			continue // a script
		}
		compared++
		compare(t, path, f)
		f.Close()
	}
	if compared < 10 {
		t.Errorf("only %d programs were compared", compared)
	}
}

func compare(t *testing.T, path string, f *debug.File) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, want := Read(file), Facts{Type: map[debug.Type]Type{debug.ET_EXEC: Exec, debug.ET_DYN: Dyn}[f.Type]}
	for _, p := range f.Progs {
		if p.Type == debug.PT_INTERP {
			text, _ := io.ReadAll(p.Open())
			want.Interpreter = strings.TrimRight(string(text), "\x00")
		}
	}
	if names, err := f.DynString(debug.DT_SONAME); err == nil && len(names) > 0 {
		want.Soname = names[0]
	}
	if got != want {
		t.Errorf("%s: %+v, want %+v", path, got, want)
	}
	if !got.IsProgram() {
		t.Errorf("%s: %+v is not a program", path, got)
	}
}

// made returns a file with these program headers and the contents at their offsets.
func made(kind uint16, progs ...prog) []byte {
	b := make([]byte, headerSize+len(progs)*progSize)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[16:], kind)
	binary.LittleEndian.PutUint64(b[32:], headerSize)
	binary.LittleEndian.PutUint16(b[54:], progSize)
	binary.LittleEndian.PutUint16(b[56:], uint16(len(progs)))
	for i, p := range progs {
		h := b[headerSize+i*progSize:]
		binary.LittleEndian.PutUint32(h, p.kind)
		binary.LittleEndian.PutUint64(h[8:], p.off)
		binary.LittleEndian.PutUint64(h[16:], p.vaddr)
		binary.LittleEndian.PutUint64(h[32:], p.filesz)
	}
	return b
}

func dyns(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func TestMade(t *testing.T) {
	all := prog{kind: ptLoad, filesz: 1 << 20, vaddr: 0x1000}
	at := uint64(headerSize + 2*progSize)
	table := func(values ...uint64) []byte {
		return append(made(3, all, prog{kind: ptDynamic, off: at, filesz: 1 << 40}), dyns(values...)...)
	}
	interp := func(texts ...string) []byte {
		progs, text, off := []prog{}, "", uint64(headerSize+len(texts)*progSize)
		for _, s := range texts {
			progs, text, off = append(progs, prog{kind: ptInterp, off: off, filesz: uint64(len(s))}), text+s, off+uint64(len(s))
		}
		return append(made(2, progs...), text...)
	}
	for name, c := range map[string]struct {
		file []byte
		want Facts
	}{
		"empty":              {nil, Facts{}},
		"a script":           {[]byte("#!/bin/sh\n" + strings.Repeat("#", 100)), Facts{}},
		"no program headers": {made(2), Facts{}},
		"too many":           {made(2, make([]prog, maxProgs+1)...), Facts{}},
		"headers cut off":    {made(2, all)[:headerSize+progSize-1], Facts{}},
		"an object":          {made(1, all), Facts{}},
		"static":             {made(2, all), Facts{Type: Exec}},
		"static-pie":         {table(dtStrsz, 1, dtFlags1, df1Pie, 0, 0), Facts{Type: Dyn}},
		"an old static-pie":  {table(dtStrsz, 1, 0, 0), Facts{Type: Dyn}},
		"one with symbols":   {table(dtFlags1, df1Pie|1, dtStrsz, 900, 0, 0), Facts{Type: Dyn}},
		"packed":             {made(3, all), Facts{Type: Dyn}},
		"musl's loader":      {table(dtStrsz, 15704, dtFlags1, 1, 0, 0), Facts{Type: Dyn, Loader: true}},
		"an interpreter":     {interp("/lib/ld.so\x00"), Facts{Type: Exec, Interpreter: "/lib/ld.so"}},
		"of two the last":    {interp("/lib/ld.so\x00", "/tmp/z\x00"), Facts{Type: Exec, Interpreter: "/tmp/z"}},
		"one without a name": {interp("\x00\x00"), Facts{Type: Exec, Interpreter: Unreadable}},
		"one that is long":   {interp(strings.Repeat("x", 3000) + "\x00"), Facts{Type: Exec, Interpreter: strings.Repeat("x", MaxText)}},
		"one beyond the end": {made(2, prog{kind: ptInterp, off: 1 << 63, filesz: 9}), Facts{Type: Exec, Interpreter: Unreadable}},
		"versions":           {table(dtVerdef, 1, 0, 0), Facts{Type: Dyn, Loader: true}},
		"after the end":      {table(0, 0, dtVerdef, 1), Facts{Type: Dyn}},
		"a soname":           {append(table(dtStrtab, 0x1000+at, dtSoname, 48, 0, 0), "ld-x.so.9\x00"...), Facts{Type: Dyn, Soname: "ld-x.so.9", Loader: true}},
		"a soname nowhere":   {table(dtStrtab, 0x10, dtSoname, 1, 0, 0), Facts{Type: Dyn, Loader: true}},
		"one that overflows": {table(dtStrtab, 1<<64-1, dtSoname, 1<<64-1, 0, 0), Facts{Type: Dyn, Loader: true}},
	} {
		if got := Read(bytes.NewReader(c.file)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// FuzzRead checks that no file makes Read panic or return more than its limits.
func FuzzRead(f *testing.F) {
	f.Add(loaderOf(f)[:4096])
	f.Add(append(made(3, prog{kind: ptLoad, filesz: 1 << 20}, prog{kind: ptDynamic, off: headerSize + 2*progSize, filesz: 64}), dyns(dtStrtab, 1, dtSoname, 2, 0, 0)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := Read(bytes.NewReader(data))
		if len(got.Interpreter) > MaxText || len(got.Soname) > MaxText || got.Type >= Types || got.Loader && got.Type != Dyn {
			t.Errorf("%+v", got)
		}
	})
}
