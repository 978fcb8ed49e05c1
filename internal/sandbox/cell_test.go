// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// cellOf is a cell of the shell that has run earlier.
func cellOf(id, earlier, code string) Execution {
	return Execution{ID: id, Text: earlier + code, Grant: proposal.Grant{Limits: testLimits()},
		Cell: &Cell{Language: "bash", Context: "main", Earlier: earlier, Code: code}}
}

// The sandbox's kernel is killed from outside while a cell runs: the result is not certain,
// and never a success or an exit code.
func TestCellCrash(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	r := testRunner(t, o)
	if result, err := r.Run(t.Context(), cellOf("x", "", "x=1\n")); err != nil || !result.Succeeded() {
		t.Fatalf("%v, %+v", err, result)
	}
	cgroup := r.current.cgroup
	once(t, o, "y", "running", func() { cgroup.killProcesses() })
	result, err := r.Run(t.Context(), cellOf("y", "x=1\n", "echo running; sleep 1000"))
	var stopped *proposal.StopError
	if !errors.As(err, &stopped) || stopped.Code != "sandbox.crashed" || result.Status != proposal.SandboxFailed {
		t.Errorf("%v, %s", err, result.Status)
	}
}

// A start that fails before the gate has decided, or after it, leaves the sandbox usable.
func TestCellWithoutInterpreter(t *testing.T) {
	t.Parallel()
	r := testRunner(t, testOptions(t)) // without the programs' files
	x := Execution{ID: "x", Cell: &Cell{Language: "python", Context: "main", Code: "1"}, Grant: proposal.Grant{Limits: testLimits()}}
	for range 2 {
		if result, err := r.Run(t.Context(), x); err != nil || result.Succeeded() || result.Detail == "" {
			t.Errorf("%v, %s %d %q", err, result.Status, result.ExitCode, result.Detail)
		}
	}
	if result := runText(t, r, "echo on"); !result.Succeeded() {
		t.Errorf("%s %s", result.Status, result.Detail)
	}
}

// A cell ends while policy decides about the shell of another context.
func TestCellEndsWhileAnotherStarts(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	var first Process
	o.Exec = func(x proposal.Exec) proposal.ExecDecision {
		if x.Command == "second" {
			first.Kill(proposal.KilledCaller)
			select {
			case <-first.Done():
			case <-time.After(3 * time.Second):
				t.Error("the first cell has not ended")
			}
		}
		return allow(x)
	}
	r := testRunner(t, o)
	first, _ = startPrinting(t, r, cellOf("first", "", "echo up; sleep 600"))
	second := cellOf("second", "", "echo up")
	second.Cell.Context = "other"
	p, _ := startPrinting(t, r, second)
	if result := outcomeOf(t, p); !result.Succeeded() {
		t.Errorf("%s %q", result.Outcome(), result.Detail)
	}
}

// Code begins in a context only when the kernel has stopped what the code before it left.
func TestCellBeginsAfterHold(t *testing.T) {
	t.Parallel()
	o, _ := gatedOptions(t)
	r := testRunner(t, o)
	if result, err := r.Run(t.Context(), cellOf("first", "", "x=1\n")); err != nil || !result.Succeeded() {
		t.Fatalf("%v, %+v", err, result)
	}
	turning := &r.current.backgrounds.turning
	turning.Lock() // before the kernel is asked
	second, err := r.Start(t.Context(), cellOf("second", "x=1\n", "x=2\n"))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the second cell's end", func() bool { return r.Earlier("bash", "main").Cells == 2 })
	third := cellOf("third", "x=1\nx=2\n", "echo $x")
	_, err = (&command{s: r.current, x: third}).openInterpreter()
	if turning.Unlock(); err == nil || !strings.Contains(err.Error(), "other code runs in the context") {
		t.Errorf("began: %v", err)
	}
	if result := outcomeOf(t, second); !result.Succeeded() {
		t.Errorf("%s %q", result.Outcome(), result.Detail)
	}
	if result, err := r.Run(t.Context(), third); err != nil || string(result.Stdout.Head) != "2\n" {
		t.Errorf("%v, %+v", err, result)
	}
}
