// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A session is an interpreter whose program runs on this host.
type session struct {
	*Interpreter
	pid    int
	events []Event
}

// newSession starts the program of a language with real pipes. command replaces the
// interpreter's name if it is not empty.
func newSession(t testing.TB, language Language, command string, change ...func(*Options)) *session {
	t.Helper()
	program, found := ProgramOf(language)
	if !found {
		t.Fatalf("no program for %s", language)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, program.File)
	if err := os.WriteFile(path, program.Text, 0o644); err != nil {
		t.Fatal(err)
	}
	argv := program.Argv(path)
	if command != "" {
		argv[0] = command
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	inside, in := pipe(t)
	out, outside := pipe(t)
	cmd.Stdin, cmd.Stdout = inside, outside
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inside.Close()
	outside.Close()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	o := Options{Language: language, Interrupt: func() error { return cmd.Process.Signal(syscall.SIGINT) },
		Status: func() string { <-ended; return cmd.ProcessState.String() }}
	for _, c := range change {
		c(&o)
	}
	i, err := Start(timeout(t, 20*time.Second), in, out, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.Close()
		endSession(cmd.Process.Pid)
		<-ended
	})
	return &session{Interpreter: i, pid: cmd.Process.Pid}
}

// endSession ends all processes of a session, which what cells start does not leave.
func endSession(id int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, _ := os.ReadFile(path)
		fields := strings.Fields(string(data[1+bytes.LastIndexByte(data, ')'):]))
		if len(fields) > 3 && fields[3] == strconv.Itoa(id) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func timeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// try runs a cell in a context and keeps its events.
func (s *session) try(t testing.TB, name, code string, d time.Duration) (Outcome, error) {
	t.Helper()
	s.events = nil
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.Execute(ctx, Cell{Context: name, Code: code}, func(e Event) { s.events = append(s.events, e) })
}

// run is try for a cell that must end.
func (s *session) run(t testing.TB, code string) Outcome {
	t.Helper()
	outcome, err := s.try(t, "", code, 20*time.Second)
	if err != nil {
		t.Fatalf("%q: %v", code, err)
	}
	return outcome
}

// text is what the last cell showed of a kind.
func (s *session) text(kind Kind) (all string) {
	for _, e := range s.events {
		if e.Kind == kind {
			all += e.Text + e.Data["text/plain"]
		}
	}
	return all
}
