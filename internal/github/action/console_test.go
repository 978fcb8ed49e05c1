// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func written(use func(*Console)) string {
	var b bytes.Buffer
	c := NewConsole(&b, rand0())
	use(c)
	return b.String()
}

// rand0 counts, so that logs are reproducible.
func rand0() func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("ABCDEFGHIJKLMNOPQRSTU%05d", n) }
}

func TestConsoleEscaping(t *testing.T) {
	tests := []struct {
		name string
		use  func(*Console)
		want string
	}{
		{"notice", func(c *Console) { c.PrintNotice("100% : a, b") }, "::notice::100%25 : a, b\n"},
		{"several lines", func(c *Console) { c.PrintWarning("a\nb\r\nc") }, "::warning::a%0Ab%0Ac\n"},
		{"a lone carriage return", func(c *Console) { c.Error("a\rb") }, "::error::a⟨CR⟩%0Ab\n"},
		{"properties", func(c *Console) {
			c.Annotate(Annotation{Level: LevelWarning, File: "a,b/c:d%.go", Line: 3, Col: 4, Title: "x: y,\nz", Message: "m"})
		}, "::warning col=4,file=a%2Cb/c%3Ad%25.go,line=3,title=x%3A y%2C↵z::m\n"},
		{"a range has no column", func(c *Console) {
			c.Annotate(Annotation{Level: LevelNotice, File: "a.go", Line: 3, EndLine: 5, Col: 4, Message: "m"})
		}, "::notice endLine=5,file=a.go,line=3::m\n"},
		{"a range that ends before it begins", func(c *Console) {
			c.Annotate(Annotation{Level: LevelNotice, File: "a.go", Line: 3, EndLine: 2, Message: "m"})
		}, "::notice file=a.go,line=3::m\n"},
		{"a file outside", func(c *Console) { c.Annotate(Annotation{File: "../x", Line: 1, Message: "m"}) }, "::error::m\n"},
		{"an absolute file", func(c *Console) { c.Annotate(Annotation{File: "/etc/passwd", Line: 1, Message: "m"}) }, "::error::m\n"},
		{"a file that cannot be shown", func(c *Console) { c.Annotate(Annotation{File: "a\u202eb", Line: 1, Message: "m"}) }, "::error::m\n"},
		{"no message", func(c *Console) { c.PrintNotice(" \n") }, "::notice::(no message)\n"},
		{"a level that is none", func(c *Console) { c.Annotate(Annotation{Level: "add-mask", Message: "m"}) }, "::error::m\n"},
		{"groups do not nest", func(c *Console) { c.BeginGroup("a"); c.BeginGroup("b\n::error::x"); c.EndGroup(); c.EndGroup() },
			"::group::a\n::endgroup::\n::group::b↵::error::x\n::endgroup::\n"},
		{"progress is never a command", func(c *Console) { c.PrintProgress("%s", "::error::x\n::error::y ##[error]z") },
			": :error::x↵::error::y ## [error]z\n"},
		{"a paragraph keeps its indentation", func(c *Console) { c.PrintParagraph("on:\n  push\n\n::error::x") },
			"  on:\n    push\n  \n  : :error::x\n"},
		{"close", func(c *Console) {
			c.BeginGroup("g")
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}, "::group::g\n::endgroup::\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, written(tt.use)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnnotationsBeyondTheRunnersLimit(t *testing.T) {
	l := readLog(written(func(c *Console) {
		for i := range 13 {
			c.Annotate(Annotation{Level: LevelWarning, File: "a.go", Line: i + 1, Message: "::error::x"})
		}
		c.Error("e")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}))
	if n := len(l.named("warning")); n != 10 {
		t.Errorf("%d warnings, want 10", n)
	}
	if n := len(l.named("error")); n != 1 {
		t.Errorf("%d errors, want 1", n)
	}
	want := []string{"warning: a.go:11: ::error::x", "warning: a.go:12: ::error::x", "warning: a.go:13: ::error::x",
		"Not shown as annotations, because the runner accepts ten per level: 3 of level warning."}
	if diff := cmp.Diff(want, l.shown); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestAnnotationMessageIsCut(t *testing.T) {
	for name, message := range map[string]string{
		"one line": strings.Repeat("x", 50_000), "lines": strings.Repeat("line\n", 5000), "wide": strings.Repeat("😀", 9000),
		"controls": strings.Repeat("\x1b\x00", 9000),
	} {
		t.Run(name, func(t *testing.T) {
			l := readLog(written(func(c *Console) { c.Error(message) }))
			if len(l.commands) != 1 {
				t.Fatalf("commands: %v", l.commands)
			}
			if n := text.CountUnits(l.commands[0].data); n > 4096 || n < 500 {
				t.Errorf("message has %d units", n)
			}
		})
	}
}

func TestStop(t *testing.T) {
	err := fmt.Errorf("cannot x: %w", &proposal.StopError{Code: "a.b", Message: "m", Hint: "do:\n\nx: y\n", Err: errors.New("::error::cause\n")})
	want := "::group::g\n::endgroup::\n::error title=fumehood%3A a.b::m: ::error::cause\n  do:\n  \n  x: y\n"
	if diff := cmp.Diff(want, written(func(c *Console) { c.BeginGroup("g"); c.Stop(err); c.Stop(nil) })); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestProblems(t *testing.T) {
	got := written(func(c *Console) {
		c.PrintProblems([]Problem{{Input: "mode", Message: "is wrong", Hint: "with:\n  mode: enforce"}})
	})
	want := "::error title=fumehood%3A input mode::mode is wrong\n  with:\n    mode: enforce\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestMask(t *testing.T) {
	var b bytes.Buffer
	c := NewConsole(&b, rand0())
	if err := c.MaskSecret("line one\r\n\n  line%two "); err != nil {
		t.Fatal(err)
	}
	want := "::add-mask::line one\n::add-mask::line%25two\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	for _, empty := range []string{"", " ", "\n\r\n \n"} {
		if c.MaskSecret(empty) == nil {
			t.Errorf("Mask(%q) has masked nothing and says nothing", empty)
		}
	}
}

func TestConsoleKeepsItsFirstError(t *testing.T) {
	c := NewConsole(&shortWriter{room: 20}, rand0())
	c.PrintProgress("0123456789")
	c.PrintProgress("0123456789")
	first := c.err
	c.PrintUntrusted("x")
	if first == nil || c.err != first || c.MaskSecret("secret word") != first || c.Close() != first {
		t.Errorf("errors: %v, then %v", first, c.err)
	}
}

// shortWriter accepts room bytes, then fails.
type shortWriter struct{ room int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestConsoleBlocksDoNotMix(t *testing.T) {
	var b bytes.Buffer
	c := NewConsole(&b, rand.Text)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 20 {
				c.PrintUntrusted("::error::x\n##[error]y\n")
				c.PrintProgress("still here")
			}
		})
	}
	wg.Wait()
	if l := readLog(b.String()); len(l.commands) != 0 || l.stopped != "" || strings.Count(b.String(), "still here\n") != 400 {
		t.Errorf("commands %v, stopped by %q", l.commands, l.stopped)
	}
}

var hostile = []string{
	"::error::x", "  ::warning file=a::x", "\t::add-mask::a", "::set-output name=conclusion::success", "::stop-commands::x",
	"::fumehood-ABCDEFGHIJKLMNOPQRSTU00001::", "##[fumehood-ABCDEFGHIJKLMNOPQRSTU00001]", "::endgroup::", "##[error]x", "text ##[add-mask]x", "###[group]x",
	"##\u200b[error]x", "#\x00#[error]x", ":\u200d:error::x", "\ufeff::error::x", "\u00ad::error::x", "\u2028::error::x", "\u0085::error::x",
	"a\r::error::x", "a\r\r\n::error::x", "\v::error::x", "\f::error::x", "\x1b[0m::error::x", "\x1b[31m##\x1b[0m[error]x", "\x00::error::x",
	"\x1b]8;;http://x\x07::error::x", "|\r::error::x", "| ::error::x", "\xff::error::x", "\xed\xa0\x80::error::x", "::debug::x", "::ERROR::x", "：：error：：x",
	"##[command]", "##[section]", "::echo::on", "::add-path::/tmp", "::set-env name=LD_PRELOAD::x", "::save-state name=a::b",
	"\u200b\u200b##\u200b\u200b[\u200berror]x", "\u202e::rorre::", "#\u0300#[error]x",
}

func TestUntrustedIsNoCommand(t *testing.T) {
	for _, s := range append(hostile, strings.Join(hostile, "\n"), strings.Join(hostile, "\r"), strings.Join(hostile, "")) {
		checkUntrusted(t, s)
	}
}

// checkUntrusted prints s and reads the log as the runner does: with all three
// defenses, and each line alone as if commands were not stopped.
func checkUntrusted(t *testing.T, s string) {
	t.Helper()
	out := written(func(c *Console) { c.PrintUntrusted(s) })
	l := readLog(out)
	if len(l.commands) != 0 || l.failed != "" || l.stopped != "" {
		t.Fatalf("%q: commands %v, failed %q, stopped by %q, log:\n%s", s, l.commands, l.failed, l.stopped, out)
	}
	if strings.Contains(strings.Join(l.shown, "\n"), "fumehood-ABC") && !strings.Contains(s, "fumehood-ABC") {
		t.Fatalf("%q: the token is shown: %q", s, l.shown)
	}
	checkLines(t, s, out)
}

func checkLines(t *testing.T, s, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if s == "" {
		return
	}
	if len(lines) < 3 {
		t.Fatalf("%q: log has %d lines: %q", s, len(lines), out)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if !strings.HasPrefix(line, untrustedPrefix) {
			t.Fatalf("%q: line %q has no prefix", s, line)
		}
		bare := readLog(line + "\n" + strings.TrimPrefix(line, untrustedPrefix) + "\n")
		if len(bare.commands) != 0 || bare.stopped != "" {
			t.Fatalf("%q: without stop-commands and prefix there is a command: %v", s, bare.commands)
		}
	}
}

func TestUntrustedRandomText(t *testing.T) {
	lanetest.SkipShort(t)
	r := mathrand.New(mathrand.NewPCG(1, 2))
	pieces := append([]string{":", "::", "#", "##", "[", "]", "error", "add-mask", " ", "\t", "\n", "\r", "\u200b", "\ufeff", "|", "=", "%0A", "\x1b[1m", "\x00", "é"}, hostile...)
	for range 4000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		checkUntrusted(t, b.String())
	}
}

func TestUntrustedIsBounded(t *testing.T) {
	lanetest.SkipShort(t)
	out := written(func(c *Console) { c.PrintUntrusted(strings.Repeat("a line of output\n", 1<<18)) })
	if len(out) > 3<<20 || !strings.Contains(out, "left out here") {
		t.Errorf("%d bytes were printed", len(out))
	}
}

func TestUntrustedDrawsAnotherToken(t *testing.T) {
	var b bytes.Buffer
	c := NewConsole(&b, rand0())
	c.PrintUntrusted("the fumehood-ABCDEFGHIJKLMNOPQRSTU00001 and FUMEHOOD-abcdefghijklmnopqrstu00002")
	if !strings.HasPrefix(b.String(), "::stop-commands::fumehood-ABCDEFGHIJKLMNOPQRSTU00003\n") {
		t.Errorf("log: %s", b.String())
	}
	defer func() {
		if recover() == nil {
			t.Error("a source that repeats itself was trusted")
		}
	}()
	NewConsole(io.Discard, func() string { return "AAAAAAAAAAAAAAAAAAAAAAAAAA" }).PrintUntrusted("fumehood-AAAAAAAAAAAAAAAAAAAAAAAAAA")
}

func FuzzUntrusted(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkUntrusted(t, s) })
}

// FuzzAnnotate: whatever an annotation contains, the runner executes exactly one
// command, of its level, with the intended properties.
func FuzzAnnotate(f *testing.F) {
	for _, s := range hostile {
		f.Add("warning", "a.go", s, s)
		f.Add(s, s, s, s)
	}
	f.Add("warning", "a.go", " blank at both ends ", "m") // the runner trims the list of properties
	f.Fuzz(func(t *testing.T, level, file, title, message string) {
		l := readLog(written(func(c *Console) {
			c.Annotate(Annotation{Level: level, File: file, Line: 1, Title: title, Message: message})
		}))
		if len(l.commands) != 1 || l.failed != "" || l.stopped != "" {
			t.Fatalf("commands: %v", l.commands)
		}
		got := l.commands[0]
		if got.name != "error" && got.name != level {
			t.Fatalf("level %q became %q", level, got.name)
		}
		for name, value := range got.properties {
			want, known := map[string]string{"file": file, "line": "1", "title": text.Inline(title, maxTitle)}[name]
			if !known || strings.TrimSpace(value) != strings.TrimSpace(want) {
				t.Fatalf("property %s is %q, want %q", name, value, want)
			}
		}
	})
}
