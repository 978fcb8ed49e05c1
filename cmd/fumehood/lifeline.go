// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// lifeline cancels when r ends. The process that started us may not be allowed to
// signal us, since we are root and it is not, and may be killed without a word;
// either way its end of the pipe closes.
func lifeline(ctx context.Context, r io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	return ctx, cancel
}

// An heir is who shall have what a run leaves behind.
type heir struct{ uid, gid int }

// heirOf reads UID:GID; without one nothing changes hands.
func heirOf(text string) (*heir, error) {
	if text == "" {
		return nil, nil
	}
	uid, gid, _ := strings.Cut(text, ":")
	u, err := strconv.ParseUint(uid, 10, 31)
	g, err2 := strconv.ParseUint(gid, 10, 31)
	if err != nil || err2 != nil {
		return nil, &proposal.StopError{Code: "owner.invalid", Message: fmt.Sprintf("owner %q is not UID:GID", text), Hint: `for example --owner "$(id -u):$(id -g)"`}
	}
	return &heir{int(u), int(g)}, nil
}

// take gives h the paths and everything below them, a folder after what is in it:
// until then nobody else can change what lies there. Links are changed themselves,
// never followed, and what is not there is nobody's.
func (h *heir) take(paths ...string) error {
	if h == nil {
		return nil
	}
	var all []string
	var errs error
	for _, root := range paths {
		errs = errors.Join(errs, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			all = append(all, path)
			return err
		}))
	}
	for _, path := range slices.Backward(all) {
		errs = errors.Join(errs, os.Lchown(path, h.uid, h.gid))
	}
	return errs
}
