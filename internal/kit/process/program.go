// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Causes of Program.Run's errors.
var (
	ErrNotStarted    = errors.New("cannot start the program")
	ErrTooMuchOutput = errors.New("the program printed too much")
)

// A Program is one of the operator that answers a question on the host, as this user.
type Program struct {
	Path      string
	Args      []string
	Env       []string // all that it has
	Timeout   time.Duration
	MaxOutput int
}

// Run starts p with input on its standard input, and returns its standard output and at most MaxOutput bytes of
// its error output. An end other than success, no end in time and a larger standard output are errors. When Run
// returns, p and what it started in its process group are killed.
func (p Program) Run(ctx context.Context, input []byte) (stdout, stderr []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, fmt.Errorf("no answer in %v", p.Timeout))
	defer cancel()
	out, said := limitedBuffer{left: p.MaxOutput, err: ErrTooMuchOutput}, limitedBuffer{left: p.MaxOutput}
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append([]string{}, p.Env...), bytes.NewReader(input), &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left
	switch {
	case out.left < 0:
		err = ErrTooMuchOutput
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it has ended, and something that it started still had its output
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return out.data, said.data, err
}

// limitedBuffer keeps the first bytes. For more, Write returns err.
type limitedBuffer struct {
	data []byte
	left int
	err  error
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.data = append(l.data, p[:min(len(p), max(0, l.left))]...)
	if l.left -= len(p); l.left < 0 && l.err != nil {
		return 0, l.err
	}
	return len(p), nil
}
