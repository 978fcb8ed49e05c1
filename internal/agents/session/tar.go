// SPDX-License-Identifier: Apache-2.0

package session

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of a directory that is copied out.
const (
	maxTarFiles = 2000
	maxTarBytes = 256 << 20
)

// IsDir reports whether path is a directory of the workspace.
func (c *Client) IsDir(ctx context.Context, path string) (bool, error) {
	found, err := c.List(ctx, escapePattern(path))
	return err == nil && len(found.Files) == 1 && found.Files[0].Type == "dir", err
}

// WriteTar writes the files below dir to w as a tar archive: at most 2,000 files and 256 MiB, each
// taken like Take. Symlinks and other special files are left out, and so are files that are
// refused; skipped is called with each of them. Modes are 0644.
func (c *Client) WriteTar(ctx context.Context, dir string, w io.Writer, skipped func(path, why string)) error {
	t := &archive{Client: c, w: tar.NewWriter(w), skipped: skipped, now: time.Now()}
	if err := t.addDirectory(ctx, strings.TrimSuffix(dir, "/")); err != nil {
		return err
	}
	return t.w.Close()
}

type archive struct {
	*Client
	w       *tar.Writer
	skipped func(path, why string)
	now     time.Time
	files   int
	bytes   int64
}

func (t *archive) addDirectory(ctx context.Context, dir string) error {
	found, err := t.List(ctx, escapePattern(dir)+"/*")
	if err != nil {
		return err
	}
	for _, f := range found.Files {
		switch f.Type {
		case "dir":
			err = t.addDirectory(ctx, f.Path)
		case "file":
			err = t.addFile(ctx, f)
		default:
			t.skipped(f.Path, f.Type)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *archive) addFile(ctx context.Context, f proposal.Change) error {
	if t.files++; t.files > maxTarFiles || t.bytes+f.Bytes > maxTarBytes {
		return newStopError("session.directory-size",
			fmt.Sprintf("the directory has more than %d files or %s", maxTarFiles, proposal.Bytes(maxTarBytes)),
			"pack it with a command, and get the archive")
	}
	data, out, err := t.Take(ctx, f.Path)
	if err != nil {
		return err
	}
	if out.Refused != "" {
		t.skipped(f.Path, out.Refused)
		return nil
	}
	t.bytes += int64(len(data))
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Size: int64(len(data)), Mode: 0o644, ModTime: t.now}
	if err := t.w.WriteHeader(header); err != nil {
		return err
	}
	_, err = t.w.Write(data)
	return err
}

// escapePattern returns the pattern that matches path alone.
func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
