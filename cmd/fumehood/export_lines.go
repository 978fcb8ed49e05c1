// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/record"
)

// A decisionFile takes decisions, a line each. A plain file has its name only when it is
// whole.
type decisionFile struct {
	w     *bufio.Writer
	file  *os.File // nil for standard output
	final string   // what file will be called, when that is not its name yet
}

// lines opens path, or standard output for "".
func (c *call) lines(path string) (*decisionFile, error) {
	if path == "" {
		return &decisionFile{w: bufio.NewWriter(c.stdout)}, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe or a terminal
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return newDecisionFile(f, "", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".decisions-*")
	return newDecisionFile(f, path, err)
}

func newDecisionFile(f *os.File, final string, err error) (*decisionFile, error) {
	if err != nil {
		return nil, decisionsError(err)
	}
	return &decisionFile{w: bufio.NewWriter(io.Writer(f)), file: f, final: final}, nil
}

func decisionsError(err error) error {
	return &proposal.StopError{Code: "decisions.not-writable", Message: "cannot write the decisions", Hint: "name a file in a folder that exists", Err: err}
}

func (d *decisionFile) write(x record.Decision) error {
	line, err := record.Line(x)
	if err != nil {
		return err
	}
	if _, err := d.w.Write(line); err != nil {
		return decisionsError(err)
	}
	return nil
}

func (d *decisionFile) close() error {
	err := d.w.Flush()
	if d.file == nil {
		if err != nil {
			return decisionsError(err)
		}
		return nil
	}
	if closed := d.file.Close(); err == nil {
		err = closed
	}
	if err == nil && d.final != "" {
		if err = os.Chmod(d.file.Name(), 0o644); err == nil {
			err = os.Rename(d.file.Name(), d.final)
		}
	}
	if err != nil {
		d.abandon()
		return decisionsError(err)
	}
	return nil
}

// abandon leaves no file that looks whole. What went to a pipe is gone.
func (d *decisionFile) abandon() {
	if d.file == nil {
		_ = d.w.Flush()
		return
	}
	d.file.Close()
	if d.final != "" {
		_ = os.Remove(d.file.Name())
	}
}
