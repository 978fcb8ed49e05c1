// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A child is fumehood run as root, started by fumehood action, which holds the
// token and need not be root. Nothing of our environment, no descriptor and no
// secret goes with it; it ends when its standard input does.
type child struct {
	args []string
	// told is written to its standard input, which stays open.
	told []byte
	// line gets each line that it writes to stderr.
	line func(string)
}

// systemPath is the child's own PATH; what it shows inside is --tools. Hosted runners
// let everybody write to /usr/local/bin.
const (
	systemPath = "/usr/sbin:/usr/bin:/sbin:/bin"
	sudo       = "/usr/bin/sudo"
)

// patience is how long a child whose lifeline was cut may take to kill its sandbox
// and seal its log.
const patience = 90 * time.Second

// run starts the child and waits for its end; its exit code tells how it went.
func (ch child) run(ctx context.Context) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	argv := append([]string{"/usr/bin/env", "-i", "PATH=" + systemPath, "HOME=/root", "LANG=C.UTF-8"}, passedOn()...)
	argv = append(append(argv, self, "run", "--lifeline"), ch.args...)
	if os.Geteuid() != 0 {
		if err := rootsAlone(self); err != nil {
			return 0, err
		}
		argv = append([]string{sudo, "-n", "--"}, argv...)
	}
	return ch.wait(ctx, argv)
}

// passedOn is what a test or a mirror sets of the child's environment.
func passedOn() []string {
	if cache := os.Getenv("FUMEHOOD_CACHE"); cache != "" {
		return []string{"FUMEHOOD_CACHE=" + cache}
	}
	return nil
}

func (ch child) wait(ctx context.Context, argv []string) (int, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + systemPath}
	cmd.Dir = "/"
	// A group of its own: an interrupt that the terminal or the runner sends to ours
	// reaches it by the lifeline, in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	said := &lineWriter{line: ch.line}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return 0, rootError(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	go func() { _, _ = stdin.Write(ch.told) }() // who has ended reads nothing, and that is told
	select {
	case err = <-done:
	case <-ctx.Done():
		stdin.Close()
		select {
		case err = <-done:
		case <-time.After(patience):
			return 0, &proposal.StopError{Code: "run.stuck", Message: fmt.Sprintf("the run did not end within %s of being cancelled", patience),
				Hint: "report this as a defect; the machine may still run a sandbox"}
		}
	}
	stdin.Close()
	said.flush()
	return ch.code(err, said)
}

// code tells our own exit codes from what sudo says when it refuses.
func (ch child) code(err error, said *lineWriter) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, rootError(err)
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	if os.Geteuid() != 0 && strings.HasPrefix(said.last, "sudo:") {
		return 0, rootError(errors.New(said.last))
	}
	return code, nil
}

func rootError(err error) error {
	return &proposal.StopError{Code: "run.root", Message: "cannot start the sandbox's supervisor as root",
		Hint: "use a runner on which the job's user is root or may use sudo without a password, as GitHub's hosted Linux runners allow", Err: err}
}

// rootsAlone refuses a program that somebody else could swap before root runs it.
func rootsAlone(path string) error {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		if err != nil {
			return rootError(err)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 || info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
			return &proposal.StopError{Code: "install.not-root-owned", Message: fmt.Sprintf("%q can be changed by others than root", path),
				Hint: "root must not run what others can change: use the action, which installs to a folder of root's, or copy fumehood and what lies beside it to /var/lib/fumehood"}
		}
		if path == "/" {
			return nil
		}
	}
}

// A lineWriter hands on whole lines, each at most so long.
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
		w.tell(string(line))
		w.rest = rest
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.tell(string(w.rest))
		w.rest = nil
	}
}

func (w *lineWriter) tell(line string) {
	w.last = line
	if w.line != nil {
		w.line(line)
	}
}
