// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package interpreter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

// marks are lines that newer Pythons add to a traceback.
var marks = regexp.MustCompile(`(?m)^ +[~^]+\n`)

// The events of many cells, one after the other, in each language.
func TestE2ECells(t *testing.T) {
	for _, language := range languages {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			s := newSession(t, language, "")
			var b strings.Builder
			for cell := range strings.SplitSeq(string(golden.Read(t, "testdata/"+string(language)+".cells")), "---\n") {
				o := s.run(t, strings.TrimSuffix(cell, "\n"))
				fmt.Fprintf(&b, "%s%s\n", cell, listed(s.events))
				if o.Ignored != 0 || o.ResultsOmitted != 0 {
					t.Errorf("%q: %+v", cell, o)
				}
			}
			golden.Compare(t, "testdata/"+string(language)+".golden", []byte(b.String()))
		})
	}
}

// listed is a readable form of events: the streams, and what else the cell showed. Their order is not promised, since a
// child writes to descriptors.
func listed(events []Event) string {
	var b strings.Builder
	streams := map[Kind]string{}
	for _, e := range events {
		switch {
		case e.Text != "":
			streams[e.Kind] += e.Text
		case e.Error != nil:
			fmt.Fprintf(&b, "=> error %s: %.100q\n%s", e.Error.Name, e.Error.Value, indented(marks.ReplaceAllString(e.Error.Traceback, "")))
		default:
			fmt.Fprintf(&b, "=> %s\n", e.Kind)
			for _, mime := range slices.Sorted(maps.Keys(e.Data)) {
				fmt.Fprintf(&b, "   %s (%d): %.100q\n", mime, len(e.Data[mime]), e.Data[mime])
			}
		}
	}
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(streams)) {
		text += fmt.Sprintf("=> %s %q\n", kind, streams[kind])
	}
	return text + b.String()
}

func indented(text string) (all string) {
	for line := range strings.Lines(text) {
		all += "   " + line
	}
	if all == "" || strings.HasSuffix(all, "\n") {
		return all
	}
	return all + "\n"
}

// Of code that is only checked nothing runs: the answer is its error of syntax, or that policy does not read it.
func TestE2ESyntaxOnly(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		for _, x := range []struct{ code, name, value string }{
			{word["set"], "PolicyDenied", "policy does not read this syntax"},
			{word["get"] + "\n)", "SyntaxError", ""},
		} {
			o, err := s.Execute(t.Context(), Cell{Code: x.code, SyntaxOnly: true}, func(e Event) {
				if e.Kind != Exception {
					t.Errorf("%q: %+v", x.code, e)
				}
			})
			if err != nil || o.Error == nil || o.Error.Name != x.name || !strings.HasPrefix(o.Error.Value, x.value) {
				t.Errorf("%q: %+v, %v", x.code, o.Error, err)
			}
		}
		if o := s.run(t, word["get"]); o.Error == nil {
			t.Errorf("the checked code ran: %+v", s.events)
		}
	})
}

// An interrupt ends a busy and a waiting cell, and keeps the state. One that comes
// when no cell runs is not sent.
func TestE2EInterrupt(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		s.run(t, word["set"])
		if running, err := s.Interrupt(); running || err != nil {
			t.Fatalf("idle: %v, %v", running, err)
		}
		for _, name := range []string{"loop", "sleep", "loop"} {
			time.AfterFunc(300*time.Millisecond, func() {
				if running, err := s.Interrupt(); !running || err != nil {
					t.Errorf("%s: %v, %v", name, running, err)
				}
			})
			if o := s.run(t, word[name]); o.Error == nil { // run waits for less than the cell's time
				t.Errorf("%s: %+v", name, o)
			}
			s.run(t, word["get"])
			if s.text(Stdout) != "42\n" {
				t.Errorf("after %s: %+v", name, s.events)
			}
		}
	})
}

// An interrupt that comes before the interpreter has read the cell is not lost.
func TestE2EInterruptEarly(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		s.run(t, word["set"])
		for _, name := range []string{"loop", "sleep"} {
			if err := syscall.Kill(-s.pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(600*time.Millisecond, func() { _ = syscall.Kill(-s.pid, syscall.SIGCONT) })
			if _, err := s.try(t, word[name], 200*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || code(err) != "" {
				t.Fatalf("%s: %v", name, err)
			}
			s.run(t, word["get"])
			if s.text(Stdout) != "42\n" {
				t.Errorf("after %s: %+v", name, s.events)
			}
		}
	})
}

// When ctx ends, the cell is interrupted and the interpreter stays usable.
func TestE2EDeadline(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		s.run(t, word["set"])
		if _, err := s.try(t, word["loop"], 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || code(err) != "" {
			t.Fatalf("%v", err)
		}
		s.run(t, word["get"])
		if s.text(Stdout) != "42\n" {
			t.Errorf("%+v", s.events)
		}
	})
}

// A cell that refuses to stop makes the interpreter unusable, and Execute returns.
func TestE2EStuck(t *testing.T) {
	s := newSession(t, Python, "", func(o *Options) { o.Grace = 200 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	cell := Cell{Code: "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ignored')\nwhile True: pass"}
	if _, err := s.Execute(ctx, cell, func(Event) { cancel() }); code(err) != "interpreter.stuck" {
		t.Fatalf("%v", err)
	}
	if _, err := s.try(t, "1", time.Second); code(err) != "interpreter.stuck" {
		t.Errorf("%v", err)
	}
}

// Output of processes that are left behind comes with the next cell, and says so.
func TestE2ELateOutput(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		s.run(t, word["late"])
		if err := os.WriteFile(filepath.Join(s.work, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, err := os.Stat(filepath.Join(s.work, "written")); err != nil; _, err = os.Stat(filepath.Join(s.work, "written")) {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // for the interpreter to read what was written
		s.run(t, word["set"])
		if !slices.ContainsFunc(s.events, func(e Event) bool { return e.Late && e.Text == "after\n" && e.Kind == Stdout }) {
			t.Errorf("%+v", s.events)
		}
		if err := os.Remove(filepath.Join(s.work, "go")); err != nil {
			t.Fatal(err)
		}
		s.run(t, word["late"])
		s.run(t, word["wait"])
		if s.text(Stdout) != "after\n" || s.events[len(s.events)-1].Late {
			t.Errorf("%+v", s.events)
		}
	})
}

// A process that is left behind and prints without end does not block cells.
func TestE2EEndlessBackground(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		s.run(t, word["background"])
		time.Sleep(200 * time.Millisecond)
		for range 3 {
			if o := s.run(t, word["set"]); o.Took > 10*time.Second {
				t.Errorf("a cell took %v", o.Took)
			}
		}
	})
}

// Head and tail of long output are passed on, and the bytes between are counted.
func TestE2ELongOutput(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "", func(o *Options) { o.Limits = Limits{Head: 1 << 10, Tail: 1 << 9} })
		s.run(t, word["long"])
		all, omitted := int64(0), int64(0)
		for _, e := range s.events {
			all += int64(len(e.Text))
			omitted += e.Omitted
		}
		if all > 1<<10+1<<9 || omitted == 0 || !strings.HasPrefix(s.text(Stdout), "line 0\n") || !strings.HasSuffix(s.text(Stdout), "9\n") {
			t.Errorf("%d bytes, %d omitted, %.50q", all, omitted, s.text(Stdout))
		}
		want := int64(0)
		for n := range 20000 {
			want += int64(len(fmt.Sprintf("line %d\n", n)))
		}
		if all+omitted != want {
			t.Errorf("%d passed on and %d omitted, of %d", all, omitted, want)
		}
	})
}

func TestE2ESyntaxErrors(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		o := s.run(t, word["syntax"])
		if o.Error == nil || !strings.Contains(o.Error.Traceback+s.text(Stderr), word["where"]) {
			t.Errorf("%+v %+v", o.Error, s.events)
		}
	})
}

// The longest cell that is allowed runs in each language.
func TestE2ELongestCell(t *testing.T) {
	each(t, func(t *testing.T, l Language, word map[string]string) {
		s := newSession(t, l, "")
		quotes := map[Language]string{Python: "len('%s')", Node: "('%s').length"}[l]
		body := strings.Repeat(`"é\\`, (MaxCode-len(quotes))/5)
		s.run(t, fmt.Sprintf(quotes, body))
		if got := strings.TrimSpace(s.text(Stdout) + s.text(Result)); len(got) != 5 {
			t.Errorf("%.100q", got)
		}
	})
}
