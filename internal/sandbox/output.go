// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits on a command's outputs.
const (
	maxOutputs = 100
	maxOutput  = 32 << 20
)

// copyOutputs copies the files that match one declared pattern to dir of the
// artifacts, as regular files with our own modes. Anything that is not a
// regular file of bounded size is listed as refused.
func (s *instance) copyOutputs(dir, pattern string) []proposal.Output {
	found, err := s.init.listOutputs(pattern, maxOutputs)
	if err != nil {
		return []proposal.Output{{Path: pattern, Refused: err.Error()}}
	}
	if len(found) == 0 {
		return []proposal.Output{{Path: pattern, Refused: "no such file"}}
	}
	list := make([]proposal.Output, len(found))
	for i, f := range found {
		list[i] = s.copyOutput(newSide, dir, f)
	}
	return list
}

func (s *instance) copyOutput(from diffSide, dir string, f proposal.Change) proposal.Output {
	out := proposal.Output{Path: f.Path, Bytes: f.Bytes}
	switch {
	case f.Type != "file":
		out.Refused = "not a regular file: " + f.Type
	case f.Bytes > maxOutput:
		out.Refused = "larger than " + proposal.Bytes(maxOutput).String()
	default:
		s.copyOut(dir, &out, func(w io.Writer) (int64, error) {
			return s.init.copyFile(from, out.Path, maxOutput, w)
		})
	}
	return out
}

// copyOutputPart is copyOutput for a part of a file.
func (s *instance) copyOutputPart(name, path string, offset, size int64) proposal.Output {
	out := proposal.Output{Path: path}
	if offset < 0 || size < 0 || size > maxOutput {
		out.Refused = "not a part of at most " + proposal.Bytes(maxOutput).String()
		return out
	}
	s.copyOut(outputsOf(name), &out, func(w io.Writer) (int64, error) {
		return s.init.copyPart(path, offset, size, w)
	})
	return out
}

// refusalWords returns why a file was not copied, in the words of a user of the workspace.
func refusalWords(err error) string {
	var said *refusal
	switch {
	case !errors.As(err, &said):
		return err.Error()
	case strings.HasSuffix(said.message, syscall.ENOENT.Error()):
		return "no such file"
	}
	return said.message
}

// isLocalPath reports whether a name from inside is a plain relative path.
func isLocalPath(name string) bool {
	return filepath.IsLocal(name) && path.Clean(name) == name && !strings.ContainsRune(name, 0)
}

// copyOut writes what read reads to out.Path below Artifacts/dir, and completes out.
func (s *instance) copyOut(dir string, out *proposal.Output, read func(io.Writer) (int64, error)) {
	switch {
	case !isLocalPath(out.Path):
		out.Refused = "not a path inside the workspace"
	case s.o.Artifacts == "":
		out.Refused = "no directory for outputs was given"
	default:
		if err := s.writeOut(dir, out, read); err != nil {
			out.Refused, out.File, out.SHA256 = refusalWords(err), "", ""
		}
	}
}

// writeOut is copyOut. os.Root confines a hostile name, O_EXCL prevents overwriting an existing file.
func (s *instance) writeOut(dir string, out *proposal.Output, read func(io.Writer) (int64, error)) error {
	if err := os.MkdirAll(filepath.Join(s.o.Artifacts, dir), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(s.o.Artifacts, dir))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(out.Path), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(out.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := read(io.MultiWriter(f, sum))
	if err != nil {
		return err
	}
	out.Bytes, out.SHA256 = n, hex.EncodeToString(sum.Sum(nil))
	out.File = filepath.Join(dir, out.Path)
	return f.Close()
}
