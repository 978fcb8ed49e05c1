// SPDX-License-Identifier: Apache-2.0

//go:build linux

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/session/internal/wire"
)

// Put is gate.Session.Put, for at most 32 MiB.
func (s *Session) Put(ctx context.Context, name string, data []byte) (out proposal.Output, err error) {
	if len(data) > wire.MaxFile {
		return out, wire.Refusal(fmt.Sprintf("the file has more than %d MiB", wire.MaxFile>>20), "put smaller files")
	}
	path, err := named("/file", "path", name)
	if err != nil {
		return out, err
	}
	err = s.call(ctx, request{method: http.MethodPut, path: path, data: data}, &out)
	out.File = ""
	return out, err
}

// Take is gate.Session.Take, for at most 128 MiB. Output.File is empty.
func (s *Session) Take(ctx context.Context, name string) (data []byte, out proposal.Output, err error) {
	path, err := named("/file", "path", name)
	if err != nil {
		return nil, out, err
	}
	err = s.parts(ctx, path, func(p part, body io.Reader) error {
		if p.Output == nil {
			return errors.New("there is no Output")
		}
		out = *p.Output
		data, err = io.ReadAll(body)
		return err
	})
	out.File = ""
	return data, out, err
}

// parts gets path, whose answer is a part and its data, and calls read with both.
func (s *Session) parts(ctx context.Context, path string, read func(part, io.Reader) error) error {
	if err := s.open(); err != nil {
		return err
	}
	ctx, cancel := s.with(ctx)
	defer cancel()
	answer, err := s.client.send(ctx, request{method: http.MethodGet, path: path, token: s.token})
	if err != nil {
		return ended(ctx, err)
	}
	defer answer.Body.Close()
	return ended(ctx, s.client.bounds.part(answer.Body, maxFailure, maxArtifact, read))
}

// part reads a part of at most line bytes, and calls read with its data, of at most max bytes.
func (b bounds) part(body io.Reader, line int, max int64, read func(part, io.Reader) error) error {
	r := newReader(body, line, int64(line))
	text, err := r.line()
	if err != nil {
		return err
	}
	var p part
	if err := decode(text, b.values, &p); err != nil {
		return err
	}
	if p.Size < 0 || p.Size > max {
		return invalidAnswer(errTooLong)
	}
	n := &counted{in: io.LimitReader(r.in, p.Size)}
	if err := read(p, n); err != nil {
		return invalidAnswer(err)
	}
	if n.read != p.Size {
		return lost(io.ErrUnexpectedEOF)
	}
	return nil
}

// A counted reader counts what was read.
type counted struct {
	in   io.Reader
	read int64
}

func (c *counted) Read(data []byte) (int, error) {
	n, err := c.in.Read(data)
	c.read += int64(n)
	return n, err
}

// Diff is gate.Session.Diff. Patch.File is a copy among ClientOptions.Artifacts.
func (s *Session) Diff(ctx context.Context, paths ...string) (d proposal.Diff, err error) {
	if paths == nil {
		paths = []string{}
	}
	err = s.call(ctx, request{method: http.MethodPost, path: "/diff", document: paths}, &d)
	for _, f := range d.Files {
		for _, state := range []*proposal.FileState{f.Old, f.New} {
			if state != nil {
				state.File = ""
			}
		}
	}
	d.Patch.File = s.copied(ctx, d.Patch.File)
	return d, err
}

// fetched returns r with copies in place of the files that it names.
func (x *command) fetched(r proposal.Record) proposal.Record {
	return located(r, func(o proposal.Stream) string { return x.session.copied(x.ctx, o.File) })
}

var copies atomic.Int64 // that this process has made, for their names

// copied returns the path of a new copy of the file that an answer calls name. It returns "" if
// there is none: callers then have the parts that the answer has.
func (s *Session) copied(ctx context.Context, name string) string {
	if name == "" || s.client.o.Artifacts == "" {
		return ""
	}
	query, err := named("/artifact", "name", name)
	if err != nil {
		return ""
	}
	path := filepath.Join(s.client.o.Artifacts, fmt.Sprintf("%s-%d", s.id, copies.Add(1)))
	err = s.parts(ctx, query, func(_ part, data io.Reader) error { return create(path, data) })
	if err != nil {
		_ = os.Remove(path)
		return ""
	}
	return path
}

// create writes a new file that only this user can read.
func create(path string, data io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	return errors.Join(err, f.Sync(), f.Close())
}
