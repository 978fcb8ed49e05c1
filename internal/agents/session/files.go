// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/agents/session/remote"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxText is the maximum length of a snippet or of a command's standard input, in bytes. A
// plan's own limits are lower.
const maxText = remote.MaxDocument

// ReadText reads the file name, or stdin if it is "-". Its error is a *proposal.StopError.
func ReadText(name string, stdin io.Reader) (string, error) {
	in := stdin
	if name != "-" {
		f, err := openBelowCwd(name, os.O_RDONLY)
		if err != nil {
			return "", unreadableFile(name, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err == nil && len(data) > maxText {
		err = errors.New("it has more than 1 MiB")
	}
	if err != nil {
		return "", unreadableFile(name, err)
	}
	return string(data), nil
}

// openBelowCwd opens a file below the working directory only if no link leads out of it: that may be a
// hostile checkout, and the user is root. Other names are the user's own choice.
func openBelowCwd(name string, flags int) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return os.OpenFile(name, flags, 0o644)
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(name, flags, 0o644)
}

func unreadableFile(name string, err error) error {
	return &proposal.StopError{Code: "session.file", Message: fmt.Sprintf("cannot read %q", name),
		Hint: "name a file that you can read", Err: err}
}

// ParseEnv reads words of the form NAME=VALUE. Its error is a *proposal.StopError.
func ParseEnv(words []string) (map[string]string, error) {
	var env map[string]string
	for _, w := range words {
		name, value, given := strings.Cut(w, "=")
		if !given || name == "" {
			return nil, newStopError("session.env", fmt.Sprintf("invalid variable %q", w), "write --env NAME=VALUE")
		}
		if env == nil {
			env = map[string]string{}
		}
		env[name] = value
	}
	return env, nil
}

// A RefusedError says why a file could not be copied in or out. It is an answer about the file.
type RefusedError struct{ Output proposal.Output }

func (e *RefusedError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the *proposal.StopError.
func (e *RefusedError) Unwrap() error {
	return newStopError("session.refused", fmt.Sprintf("%q was refused: %s", e.Output.Path, e.Output.Refused), "")
}

// Get copies a file of the workspace, or a directory as a tar archive, to the new file name, or
// to stdout if name is "-". skipped is as for Tar.
func (c *Client) Get(
	ctx context.Context, path, name string, stdout io.Writer, skipped func(path, why string),
) (out proposal.Output, err error) {
	dir, err := c.IsDir(ctx, path)
	if err != nil {
		return out, err
	}
	if dir {
		return proposal.Output{Path: path},
			writeTo(name, stdout, func(w io.Writer) error { return c.WriteTar(ctx, path, w, skipped) })
	}
	data, out, err := c.Take(ctx, path)
	if err == nil && out.Refused != "" {
		err = &RefusedError{out}
	}
	if err != nil {
		return out, err
	}
	return out, writeTo(name, stdout, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// PutFile copies the file name, or stdin if it is "-", to path in the workspace.
func (c *Client) PutFile(ctx context.Context, name, path string, stdin io.Reader) (proposal.Output, error) {
	in := stdin
	if name != "-" {
		f, err := openBelowCwd(name, os.O_RDONLY)
		if err != nil {
			return proposal.Output{}, unreadableFile(name, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, remote.MaxFile+1))
	if err != nil {
		return proposal.Output{}, unreadableFile(name, err)
	}
	out, err := c.Put(ctx, path, data)
	if err == nil && out.Refused != "" {
		err = &RefusedError{out}
	}
	return out, err
}

// CopyFile copies a file of the session's artifacts to the new file name, or to stdout if it is
// "-". An empty from is an empty file.
func CopyFile(from, name string, stdout io.Writer) error {
	return writeTo(name, stdout, func(w io.Writer) error {
		if from == "" {
			return nil
		}
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

func writeTo(name string, stdout io.Writer, write func(io.Writer) error) error {
	if name == "-" {
		return write(stdout)
	}
	f, err := openBelowCwd(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err == nil {
		err = errors.Join(write(f), f.Close())
	}
	var coded *proposal.StopError
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &proposal.StopError{Code: "session.file", Message: fmt.Sprintf("cannot write %q", name),
		Hint: "name a new file in a directory that you can write to", Err: err}
}
