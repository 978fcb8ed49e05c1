// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/peer"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// asNobody calls do on a thread of another user, which ends after it.
func asNobody(t *testing.T, do func() error) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			done <- errno
			return
		}
		done <- do()
	}()
	return <-done
}

// anyones returns a directory that every user may enter, as none of a session is.
func anyones(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fumehood-session-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A connection of another user gets no answer, even if that user reaches the socket.
func TestOtherUserConnects(t *testing.T) {
	dir := anyones(t)
	l, err := (&sessionDir{Dir: leased(t, dir)}).listen()
	if err == nil {
		err = os.Chmod(filepath.Join(dir, socketName), 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	ask := func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, socketName)}); err != nil {
			return err
		}
		_, _ = unix.Write(fd, []byte("GET /session HTTP/1.0\r\n\r\n"))
		var text [64]byte
		n, err := unix.Read(fd, text[:])
		if err == nil && n == 0 {
			return errNoAnswer
		}
		return err
	}
	if err := asNobody(t, ask); !errors.Is(err, errNoAnswer) && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("another user: %v", err)
	}
	if err := ask(); err != nil {
		t.Errorf("the same user: %v", err)
	}
}

var errNoAnswer = errors.New("no answer")

// A client does not talk to a server of another user.
func TestOtherUserServes(t *testing.T) {
	dir := anyones(t)
	err := asNobody(t, func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, socketName)}), unix.Listen(fd, 5))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := dialSession(t.Context(), dir); !errors.Is(err, peer.ErrOtherUser) {
		t.Errorf("connected: %v, %v", c, err)
	}
}

func state(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	return filepath.Join(dir, "fumehood", "sessions")
}

// The directory of sessions is this user's alone, and not a link.
func TestDirectory(t *testing.T) {
	dir := state(t)
	if got, err := userSessionsDir(); err != nil || got != dir {
		t.Fatalf("%q, %v", got, err)
	}
	for name, spoil := range map[string]func() error{
		"mode":       func() error { return os.Chmod(dir, 0o750) },
		"other user": func() error { return errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 65534, -1)) },
		"link":       func() error { return errors.Join(os.Remove(dir), os.Symlink(t.TempDir(), dir)) },
		"file":       func() error { return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700), spoil()); err != nil {
			t.Fatal(err)
		}
		if got, err := userSessionsDir(); proposal.FailureOf(err).Code != "session.directory" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A place is one session's until its process ends; what a killed one left is described once.
func TestPlace(t *testing.T) {
	dir := state(t)
	p, err := claimSessionDir("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claimSessionDir("a"); proposal.FailureOf(err).Code != "session.exists" {
		t.Errorf("a second: %v", err)
	}
	if _, err := Connect(t.Context(), "a"); proposal.FailureOf(err).Code != "session.busy" {
		t.Errorf("before it listens: %v", err)
	}
	if err := errors.Join(p.writeInfo(Info{Name: "a", Log: "the log"}), p.Close()); err != nil { // as if it was killed
		t.Fatal(err)
	}
	if list, err := List(t.Context()); err != nil || len(list) != 1 || !list[0].Killed || list[0].Log != "the log" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("again: %+v, %v", list, err)
	}
	for name, content := range map[string]string{"half": `{"name":`, "none": ""} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, infoName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Connect(t.Context(), name); proposal.FailureOf(err).Code != "session.unknown" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if p, err := claimSessionDir("link"); err == nil {
		t.Errorf("a link: %+v", p)
	}
}

// Clients of a session have no approvals, and nothing in the background.
func TestShared(t *testing.T) {
	h := &sharedSession{} // no call reaches the session
	if _, err := h.DoApproved(t.Context(), proposal.Proposal{}, proposal.ClientApproval{}); proposal.FailureOf(err).Code != "session.request" {
		t.Errorf("an approval: %v", err)
	}
	if _, err := h.Start(t.Context(), proposal.Proposal{}); proposal.FailureOf(err).Code != "session.request" {
		t.Errorf("in the background: %v", err)
	}
}

// calledSession notes the order of calls.
type calledSession struct {
	gate.Session
	calls *[]string
}

func (s calledSession) SetUp(_ context.Context, before proposal.Proposal, _ func(proposal.Record)) error {
	*s.calls = append(*s.calls, "set-up before "+before.Run)
	return nil
}

func (s calledSession) Put(_ context.Context, name string, _ []byte) (proposal.Output, error) {
	*s.calls = append(*s.calls, "put "+name)
	return proposal.Output{}, nil
}

// All of set-up runs before a file is written, which it would read.
func TestSetUpPrecedesFiles(t *testing.T) {
	var calls []string
	h := &sharedSession{Session: calledSession{calls: &calls}, ctx: t.Context()}
	if _, err := h.Put(t.Context(), "package.json", nil); err != nil || strings.Join(calls, ", ") != "set-up before , put package.json" {
		t.Errorf("%q, %v", calls, err)
	}
}

// A server that ends, or that answers something else, is an error with a code.
func TestBrokenAnswers(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "noise": "noise\r\n\r\n", "half": "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"id\":\"c1\"}", "other status": "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"} {
		dir := state(t)
		p, err := claimSessionDir("a")
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.listen()
		if err != nil {
			t.Fatal(err)
		}
		go serveText(l, text)
		want := "session.ended"
		if name == "other status" {
			want = "session.answer"
		}
		if c, err := Connect(t.Context(), "a"); proposal.FailureOf(err).Code != want {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		l.Close()
		if err := p.Remove(); err != nil {
			t.Error(err, dir)
		}
	}
}

func serveText(l net.Listener, text string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		var request [4096]byte
		_, _ = c.Read(request[:])
		_, _ = c.Write([]byte(text))
		_ = c.Close()
	}
}

func TestEnv(t *testing.T) {
	for word, want := range map[string]string{"A=b": "b", "A=b=c": "b=c", "A=": ""} {
		if env, err := ParseEnv([]string{word}); err != nil || env["A"] != want {
			t.Errorf("%q: %q, %v", word, env, err)
		}
	}
	for _, word := range []string{"A", "=b", ""} {
		if env, err := ParseEnv([]string{word}); err == nil {
			t.Errorf("%q: %q", word, env)
		}
	}
}

func leased(t *testing.T, dir string) *lease.Dir {
	t.Helper()
	return &lease.Dir{Path: dir}
}

// A link of a hostile checkout leads neither what is read nor what is written out of the
// working directory, and nothing is overwritten.
func TestFilesBelow(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	victim := filepath.Join(outside, "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("mine"), 0o600), os.WriteFile("there", []byte("there"), 0o600), os.Mkdir("sub", 0o755), os.Symlink(victim, "link"),
		os.Symlink(filepath.Join(outside, "new"), "dangling"), os.Symlink(outside, "dir"), os.Symlink("there", "inside")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "dangling", "dir/new", "dir/victim", "there", "inside", "nosuch/x"} {
		if err := CopyFile("there", name, nil); proposal.FailureOf(err) == nil || proposal.FailureOf(err).Code != "session.file" {
			t.Errorf("written to %s: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, name := range []string{"link", "dir/victim"} {
		if text, err := ReadText(name, nil); err == nil {
			t.Errorf("read from %s: %q", name, text)
		}
	}
	for _, name := range []string{"new", "sub/new", filepath.Join(outside, "new")} {
		if err := CopyFile("there", name, nil); err != nil {
			t.Error(err)
		}
		if text, err := ReadText(name, nil); err != nil || text != "there" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := ReadText("-", strings.NewReader(strings.Repeat("x", maxText+1))); err == nil {
		t.Error("a text that is too long was read")
	}
}

// A Printer shows nothing that a terminal interprets.
func TestPrinter(t *testing.T) {
	var out, errs strings.Builder
	p := Printer{&out, &errs}
	p.PrintChunk(proposal.Chunk{Stream: proposal.ChunkStdout, Data: []byte("\x1b]0;title\x07a\u202eb\n::error::x\n"), Dropped: 7})
	p.PrintChunk(proposal.Chunk{Stream: proposal.ChunkDisplay, Display: &proposal.Display{Forms: map[string]string{"image/png": "AAAA"}}})
	p.PrintChunk(proposal.Chunk{Stream: proposal.ChunkStderr, Data: []byte("e\n"), Withheld: "r: \x1b"})
	p.PrintRecord(proposal.Record{Proposal: proposal.Proposal{ID: "c1"}, Decision: proposal.Decision{Effect: proposal.Allow}, Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1, Exception: &proposal.Exception{Name: "E", Value: "\x1b"}}})
	if all := out.String() + errs.String(); strings.ContainsAny(all, "\x1b\x07\u202e") || strings.Contains(all, "\n::error") {
		t.Errorf("%q", all)
	}
	for _, want := range []string{"7 bytes are not shown", "stderr is withheld: r: ", "c1: exit code 1"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("%q lacks %q", errs.String(), want)
		}
	}
	if !strings.Contains(out.String(), "image/png, 4 bytes as base64") {
		t.Errorf("%q", out.String())
	}
}
