// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/watch/monitor/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// library is a question about a file that a process of the text loads.
func library(path string) wire.Exec {
	return wire.Exec{ExecKey: wire.ExecKey{Generation: 1, Files: []wire.File{{Loaded: true, Path: path, Layer: wire.LayerWritten}}}, From: "/bin/bash", Lineage: wire.LineageFirst}
}

// What is loaded is asked about and recorded as such. An answer about it may be reused for a
// process of the text, and says nothing about a start of the same file.
func TestLoad(t *testing.T) {
	var asked []proposal.Exec
	var kinds []string
	decide := func(x proposal.Exec) proposal.ExecDecision {
		asked = append(asked, x)
		return only("/lib/ok")(x)
	}
	m, k := dialed(t, Options{Exec: decide, AnswerWithin: time.Minute, Events: 100, Init: "/init",
		Same:  func(uint64, string) []string { return []string{"/bin/curl"} },
		Event: func(e proposal.Event) { kinds = append(kinds, e.Kind+" "+e.Path) }})
	k.greet(m, &Command{ID: "unit"})
	if v, _ := k.ask(library("/lib/ok")); !v.Allow || !v.Keep {
		t.Errorf("allowed: %+v", v)
	}
	first := k.seq
	if v, _ := k.ask(library("/lib/no")); v.Allow || !v.Keep {
		t.Errorf("refused: %+v", v)
	}
	again := library("/lib/no")
	again.Of = k.seq
	k.send(again.Append(nil, k.next()))
	start := program("/lib/ok")
	start.Files = append(start.Files, wire.File{Loaded: true, Named: "/tmp/ld.so", Path: "/lib/no"})
	if v, _ := k.ask(start); v.Allow {
		t.Error("a program with a refused loader is allowed")
	}
	start.Files[1].Path = "/lib/ok"
	if v, _ := k.ask(start); !v.Allow {
		t.Error("a program with an allowed loader is refused")
	}
	turned := library("/lib/ok")
	turned.Of, turned.Allowed, turned.Files[0].Loaded = first, true, false
	k.send(turned.Append(nil, k.next()))
	select {
	case <-m.Failed():
	case <-time.After(time.Minute):
		t.Error("an answer about a load was used for a start")
	}
	if d := cmp.Diff([]string{"load /lib/ok", "refused /lib/no", "refused /lib/no", "refused /lib/no", "exec /lib/ok"}, kinds); d != "" {
		t.Error(d)
	}
	want := proposal.Exec{Command: "unit", Path: "/lib/ok", Asked: "/lib/ok", Loaded: true, Argv: []string{}, Env: []string{}, Pid: 0, From: "/bin/bash", Layer: "written",
		Digest: formatDigest([32]byte{}), Same: []string{}, Grants: []string{}, Text: true}
	if d := cmp.Diff(want, asked[0]); d != "" {
		t.Error(d)
	}
	if x := asked[3]; !x.Loaded || x.From != "/lib/ok" || x.Asked != "/tmp/ld.so" || x.Script != "" {
		t.Errorf("a loader: %+v", x)
	}
}

// askedNothing are the fields of wire.Exec that change no question to policy.
var askedNothing = map[string]string{
	"ExecKey": "the key: see TestKeys", "Of": "answered already", "Allowed": "as Of", "Time": "is the event's",
}

// Each fact that is sent is set in the kernel, whose source this test reads, and changes what policy is asked.
func TestFactsReachPolicy(t *testing.T) {
	files, err := filepath.Glob("sentry/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	m, c := &Monitor{o: Options{Init: "/init"}}, &Command{ID: "unit"}
	base := program("/bin/x")
	base.Lineage = wire.LineageFirst
	for field := range reflect.TypeFor[wire.Exec]().Fields() {
		if !field.Anonymous && !regexp.MustCompile(`\b`+field.Name+`(:| =[^=]|, )`).Match(source) {
			t.Errorf("%s is not set in internal/watch/monitor/sentry", field.Name)
		}
		e := base
		switch v := reflect.ValueOf(&e).Elem().FieldByIndex(field.Index); v.Kind() {
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int32, reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint32, reflect.Uint64:
			v.SetUint(v.Uint() ^ 1)
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Array:
			v.Index(0).SetUint(1)
		case reflect.Slice:
			v.Set(reflect.ValueOf([]string{"PATH=/x"}))
		}
		_, nothing := askedNothing[field.Name]
		if same := reflect.DeepEqual(c.policyQuestions(m, &base), c.policyQuestions(m, &e)); same != nothing {
			t.Errorf("%s: a question of internal/watch/monitor/decide.go does not depend on it: %v; listed above: %v", field.Name, same, nothing)
		}
	}
}

// Two questions with the same key for the kernel have the same key for policy.
func TestKeys(t *testing.T) {
	m := &Monitor{o: Options{Init: "/init", Same: func(_ uint64, digest string) []string { return []string{digest} }}}
	c := &Command{ID: "unit", Grants: []string{"built"}}
	e := program("/bin/x")
	e.Asked = "/workspace/x"
	e.Files = append(e.Files, wire.File{Named: "/bin/sh", Path: "/usr/bin/dash", Layer: wire.LayerWritten}, wire.File{Loaded: true, Path: "/tmp/ld.so"})
	other := e
	other.Of, other.Allowed, other.Time, other.Pid, other.Parent, other.From, other.ParentPath = 1, true, 2, 3, 4, "/init", "/p"
	other.Cwd, other.Lineage, other.Named, other.ArgvDigest, other.ArgvCut, other.Argv = "/c", 5, "n", [32]byte{1}, true, []string{"y", "z"}
	other.Vars, other.VarsCut = []string{"A=b"}, true
	var keys, others []string
	for i := range e.Files {
		keys, others = append(keys, points.KeyOf(c.policyQuestions(m, &e)[i]).String()), append(others, points.KeyOf(c.policyQuestions(m, &other)[i]).String())
	}
	if d := cmp.Diff(keys, others); d != "" || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != 3 {
		t.Error(d, keys)
	}
}
