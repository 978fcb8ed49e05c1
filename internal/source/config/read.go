// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// ReadFile reads the configuration file name and applies overrides, which come from the
// operator. If name is empty, the workspace's own file is read where there is one; it must
// not choose what commands can see of the host, because it can be a pull request's. "none"
// reads no file. Its error is a *proposal.StopError.
func ReadFile(name, workspace string, overrides ...Override) (Effective, error) {
	var file Config
	data, err := []byte(nil), error(nil)
	workspaceFile := name == ""
	switch name {
	case "none":
	case "":
		name = Path
		data, err = readInside(workspace, name)
	default:
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return Effective{}, &proposal.StopError{Code: "config.unreadable",
			Message: fmt.Sprintf("cannot read the configuration %q", name),
			Hint:    "name a file with --config, or --config none", Err: err}
	}
	if filepath.Base(name) == filepath.Base(Path) {
		name = Path // what people call it, wherever it was copied to
	}
	if data != nil {
		var problems []proposal.Problem
		if file, problems = Decode(data, name); len(problems) > 0 {
			return Effective{}, invalidConfig(name, problems)
		}
	}
	if workspaceFile && (file.Rootfs != "" || len(file.Tools) > 0) {
		return Effective{}, &proposal.StopError{Code: "config.untrusted",
			Message: "rootfs or tools in the workspace's own " + Path +
				": they choose what of this host commands can see",
			Hint: "if you trust this file, name it: --config " + Path}
	}
	merged, err := MergeOverrides(file, overrides...)
	if err != nil {
		return merged, &proposal.StopError{Code: codeConfig, Message: "invalid configuration: " + err.Error(),
			Hint: "see fumehood run --help", Err: nil}
	}
	return merged, nil
}

// codeConfig is the code of a configuration that is invalid.
const codeConfig = "config.invalid"

// readInside reads a file of the workspace without following links out of it; nil if it
// is not there.
func readInside(workspace, name string) ([]byte, error) {
	root, err := os.OpenRoot(workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // reported by the sandbox, with its code
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would block
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, MaxDocument+1))
}

func invalidConfig(name string, problems []proposal.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = Describe(name, p)
	}
	return &proposal.StopError{Code: codeConfig, Message: "invalid configuration: " + strings.Join(lines, "; "),
		Hint: "fix the file: testdata/schema/fumehood.config.v1.json is its schema"}
}
