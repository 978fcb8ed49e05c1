// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// runChild runs command, run or review, as root, in a process without the token, and returns its exit
// code. serve may be nil.
func (j *Job) runChild(
	ctx context.Context, command string, s runspec.Spec, serve func(context.Context, io.Reader, io.Writer),
) (int, error) {
	input, err := s.EncodeLine()
	if err != nil {
		return 0, err
	}
	return child{program: j.options.Program, command: command, input: input, serve: serve,
		cache: j.options.Getenv("FUMEHOOD_CACHE"),
		line:  func(s string) { j.console.PrintUntrusted(j.plain(s)) }}.run(ctx)
}

// A child is Options.Program as root. It gets nothing of this process's environment, no descriptor
// and no secret but what is in its input, and ends when its standard input does: this process, which
// holds the token, may not be allowed to signal it.
type child struct {
	program string // checked before sudo runs it
	command string
	input   []byte // a document of runspec, written to its standard input, which stays open
	// serve, if it is set, then answers on its standard input what it writes to its standard
	// output, until ctx ends.
	serve func(ctx context.Context, in io.Reader, out io.Writer)
	cache string       // its FUMEHOOD_CACHE, as a test or a mirror sets it; "" for none
	line  func(string) // called with each line of its standard error
}

// systemPath is the child's own PATH; what it shows inside is Spec.Tools. On hosted runners
// every user may write to /usr/local/bin.
const (
	systemPath = "/usr/sbin:/usr/bin:/sbin:/bin"
	sudo       = "/usr/bin/sudo"
)

// sealTime is how long a child whose standard input has ended may take to kill its sandbox
// and seal its log.
const sealTime = 90 * time.Second

func isRoot() bool { return os.Geteuid() == 0 }

func canSudo() bool {
	if isRoot() {
		return true
	}
	cmd := exec.Command(sudo, "-n", "/usr/bin/true")
	cmd.Env = []string{"PATH=" + systemPath}
	return cmd.Run() == nil
}

// run starts the child and returns its exit code. Ending ctx ends the child, which then
// still seals its log.
func (ch child) run(ctx context.Context) (int, error) {
	argv := []string{"/usr/bin/env", "-i", "PATH=" + systemPath, "HOME=/root", "LANG=C.UTF-8"}
	if ch.cache != "" {
		argv = append(argv, "FUMEHOOD_CACHE="+ch.cache)
	}
	argv = append(argv, ch.program, ch.command, "--job")
	if !isRoot() {
		if err := checkRootOwned(ch.program); err != nil {
			return 0, err
		}
		argv = append([]string{sudo, "-n", "--"}, argv...)
	}
	return ch.wait(ctx, argv)
}

func (ch child) wait(ctx context.Context, argv []string) (int, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + systemPath}
	cmd.Dir = "/"
	// Its own group: an interrupt that the terminal or the runner sends to ours ends the
	// child in order, by the end of its standard input.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stderr := &lineWriter{line: ch.line}
	cmd.Stderr = stderr
	talk, err := ch.talk(cmd, stdin)
	if err != nil {
		return 0, err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	if err := cmd.Start(); err != nil {
		return 0, rootError(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	go talk(serving)
	select {
	case err = <-done:
	case <-ctx.Done():
		stdin.Close()
		select {
		case err = <-done:
		case <-time.After(sealTime):
			return 0, &proposal.StopError{Code: "run.stuck",
				Message: fmt.Sprintf("the run did not end within %s of its cancellation", sealTime),
				Hint:    "report this as a bug; a sandbox may still be running on the machine"}
		}
	}
	stdin.Close()
	stderr.flush()
	return ch.code(err, stderr)
}

// talk returns what this process says to the child, which may have ended: then its code says so.
func (ch child) talk(cmd *exec.Cmd, stdin io.Writer) (func(context.Context), error) {
	if ch.serve == nil {
		return func(context.Context) { _, _ = stdin.Write(ch.input) }, nil
	}
	stdout, err := cmd.StdoutPipe()
	return func(ctx context.Context) {
		if _, err := stdin.Write(ch.input); err == nil {
			ch.serve(ctx, stdout, stdin)
		}
	}, err
}

// code is the child's exit code, which is an error when it is sudo's refusal.
func (ch child) code(err error, stderr *lineWriter) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, rootError(err)
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	if !isRoot() && strings.HasPrefix(stderr.last, "sudo:") {
		return 0, rootError(errors.New(stderr.last))
	}
	return code, nil
}

func rootError(err error) error {
	return &proposal.StopError{Code: "run.root", Message: "cannot start the sandbox's supervisor as root",
		Hint: "use a runner on which the job's user is root or can use sudo without a password, such as GitHub's hosted Linux runners", Err: err}
}

// checkRootOwned refuses a program that another user could replace before root runs it.
func checkRootOwned(path string) error {
	err := process.CheckPrivate(path, 0)
	changeable := &process.Changeable{}
	switch {
	case errors.As(err, &changeable):
		return &proposal.StopError{Code: "install.not-root-owned",
			Message: fmt.Sprintf("users other than root can change %q", changeable.Path),
			Hint:    "use the action, which installs to a directory that only root can change, or copy fumehood and the files next to it to /var/lib/fumehood"}
	case err != nil:
		return rootError(err)
	}
	return nil
}

// A lineWriter calls line with whole lines of at most maxLine bytes.
type lineWriter struct {
	line func(string)
	rest []byte
	last string
}

const maxLine = 4096

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole && len(line) < maxLine {
			return len(p), nil
		}
		if len(line) > maxLine {
			line, rest = line[:maxLine], w.rest[maxLine:]
		}
		w.emit(string(line))
		w.rest = rest
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.emit(string(w.rest))
		w.rest = nil
	}
}

func (w *lineWriter) emit(line string) {
	w.last = line
	if w.line != nil {
		w.line(line)
	}
}
