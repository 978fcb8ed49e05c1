// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// readyFD is the pipe on which the process in the background says that it is ready.
const readyFD = 3

// errorsName is the file that receives the standard error of a process in the background.
const errorsName = "stderr"

// An ExitError is the exit code of a process that did not become ready. It has printed why.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return "the process in the background ended" }

// Start starts this program with args as a process in the background, which calls Host with
// Ready, and returns when clients can connect. Until then the process prints to stderr. If
// ctx ends before, the process is ended. The error is an *ExitError if the process ended.
func Start(ctx context.Context, args []string, stderr *os.File) (info Info, err error) {
	ready, write, err := os.Pipe()
	if err != nil {
		return info, err
	}
	defer ready.Close()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0], cmd.Stderr = os.Args[0], stderr
	cmd.ExtraFiles = []*os.File{write} // readyFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = write.Close()
	if err != nil {
		return info, err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	if data, _ := io.ReadAll(ready); json.Unmarshal(data, &info) == nil {
		return info, nil
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		return info, errors.Join(err, newStopError("session.start",
			"the process in the background did not become ready", ""))
	}
	return info, &ExitError{exit.ExitCode()}
}

// ReportReady is Options.Ready for a process that Start has started.
func ReportReady(info Info, dir string) error {
	ready := os.NewFile(readyFD, "ready")
	defer ready.Close()
	f, err := os.OpenFile(filepath.Join(dir, errorsName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Dup3(int(f.Fd()), 2, 0); err != nil { // the terminal belongs to others now
		return err
	}
	return json.NewEncoder(ready).Encode(info)
}
