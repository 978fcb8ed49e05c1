// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package sandbox

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// pythonOptions returns options of a sandbox that has interpreters.
func pythonOptions(t testing.TB) (Options, *recorder) {
	o, rec := gatedOptions(t)
	o.Files = InterpreterFiles()
	o.Limits.Memory = proposal.GiB
	o.Env = map[string]string{"HOME": "/home/fumehood"}
	return o, rec
}

func runPython(t testing.TB, r *Runner, code string) (string, proposal.Result) {
	t.Helper()
	x := Execution{ID: "cell", Cell: &Cell{Language: "python", Context: "main", Code: code},
		Grant: proposal.Grant{Limits: r.o.Limits}}
	x.Grant.Limits.Wall = proposal.Duration(time.Minute)
	result, err := r.Run(t.Context(), x)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	if result.Exception != nil {
		return result.Exception.Name + ": " + result.Exception.Value, result
	}
	var out strings.Builder
	out.Write(result.Stdout.Head)
	for _, d := range result.Displays {
		out.WriteString(d.Forms["text/plain"])
	}
	return out.String(), result
}

// An interpreter's state, threads and children are there in each copy. What they did not have before, they do not
// get by being saved: a held child does not run between two cells, a mapping does not become code unasked, what a
// process writes through a mapping is a change, and descriptors of commands that have ended lead nowhere.
func TestE2ESavedInterpreter(t *testing.T) {
	o, rec := pythonOptions(t)
	rec.reset(allow)
	r := testRunner(t, o)
	out, _ := runPython(t, r, `
import mmap, os, subprocess, sys, threading, time, ctypes
state = {"x": 42}
import random
random.seed(7)
open("/workspace/mapped", "w").write("old" + "." * 4093)
shared = mmap.mmap(os.open("/workspace/mapped", os.O_RDWR), 4096)
open("/tmp/code", "wb").write(open("/opt/bin/canary", "rb").read())
f = os.open("/tmp/code", os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
data = libc.mmap(None, 4096, 1, 2, f, 0)
ticks = []
def tick():
    while True:
        ticks.append(time.time()); time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
child = subprocess.Popen(["/usr/bin/sleep", "600"])
print("ready")`)
	if out != "ready\n" {
		t.Fatalf("%q", out)
	}
	check := func(name string, r *Runner, rec *recorder) {
		t.Helper()
		rec.reset(deny)
		out, result := runPython(t, r, `print(state["x"], child.poll(), max(b - a for a, b in zip(ticks, ticks[1:])) < 600)
shared[:3] = b"new"
print(libc.mprotect(ctypes.c_void_p(data), 4096, 5), ctypes.get_errno())
print(subprocess.run(["/usr/bin/true"]).returncode)
subprocess.run(["/opt/bin/canary"])`)
		if !strings.Contains(out, "PermissionError") ||
			!strings.Contains(string(result.Stdout.Head), "42 None True\n-1 13\n0\n") {
			t.Errorf("%s: %q, %q", name, out, result.Stdout.Head)
		}
		if !slices.Contains(rec.refused(), canary) || !slices.Contains(rec.refused(), "/tmp/code") {
			t.Errorf("%s: refused %q", name, rec.refused())
		}
		if !slices.ContainsFunc(result.Changes.Files, func(c proposal.Change) bool { return c.Path == "mapped" }) {
			t.Errorf("%s: a write through a mapping is not a change: %+v", name, result.Changes)
		}
		if result.Observations == nil || !result.Observations.Complete {
			t.Errorf("%s: %+v", name, result.Observations)
		}
	}
	saved := saveRunner(t, r)
	check("saved", r, rec)
	once, _ := runPython(t, r, "print(random.getstate()[1][:3])")
	forked, forkedRec := forkRunner(t, o, saved)
	check("forked", forked, forkedRec)
	if out, _ := runPython(t, forked, "print(random.getstate()[1][:3])"); out == once {
		t.Errorf("a copy has the random state of its original: %q", out)
	}
	twice, twiceRec := forkRunner(t, o, saveRunner(t, forked))
	check("forked twice", twice, twiceRec)
	if out, _ := runPython(t, twice, "import os; os._exit(3)"); out != "" {
		t.Errorf("%q", out)
	}
	if out, _ := runPython(t, twice, "state"); !strings.Contains(out, "NameError") {
		t.Errorf("a restored interpreter that ended goes on: %q", out)
	}
	endless := Execution{ID: "cell", Cell: &Cell{Language: "python", Context: "main", Code: "while True: pass"},
		Grant: proposal.Grant{Limits: o.Limits}}
	endless.Grant.Limits.Wall = proposal.Duration(2 * time.Second)
	if result, err := forked.Run(t.Context(), endless); err != nil || result.Status != proposal.TimedOut {
		t.Errorf("%v, %+v", err, result)
	}
	if out, _ := runPython(t, forked, "print(state)"); out != "{'x': 42}\n" {
		t.Errorf("an interrupted cell took the state along: %q", out)
	}
}

// BenchmarkFork measures a sandbox with pandas loaded: a save, a copy to its first cell, ten copies at once, and both
// with 200 MB more in memory.
//
//	go test -tags e2e ./internal/sandbox -run '^$' -bench Fork -benchtime 5x
func BenchmarkFork(b *testing.B) {
	o, rec := pythonOptions(b)
	rec.reset(allow)
	r := testRunner(b, o)
	if out, _ := runPython(b, r, "import pandas as pd; df = pd.DataFrame({'a': range(9)})"); out != "" {
		b.Fatal(out)
	}
	fork := func(saved *Saved) *Runner {
		c, _ := forkRunner(b, o, saved)
		if out, _ := runPython(b, c, "int(df.a.sum())"); out != "36" {
			b.Errorf("%q", out)
		}
		return c
	}
	spent, peak := map[string]time.Duration{}, proposal.Bytes(0)
	measure := func(name string, do func()) {
		began := time.Now()
		do()
		spent[name] += time.Since(began)
	}
	for b.Loop() {
		var saved, large *Saved
		measure("save", func() { saved = saveRunner(b, r) })
		measure("fork", func() { peak = max(peak, fork(saved).current.cgroup.peakMemory()) })
		measure("ten-forks", func() {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { fork(saved) })
			}
			all.Wait()
		})
		runPython(b, r, "big = bytearray(200 << 20)\nfor i in range(0, len(big), 4096): big[i] = 1")
		measure("save-200MB", func() { large = saveRunner(b, r) })
		measure("fork-200MB", func() { fork(large) })
		runPython(b, r, "del big")
	}
	for name, took := range spent {
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), name+"-ms")
	}
	b.ReportMetric(float64(peak>>20), "fork-peak-MiB")
}
