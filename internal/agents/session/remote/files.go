// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxAnnounced is the maximum number of files that a client can fetch.
const maxAnnounced = 100_000

// announcedFiles are the files that answers have named. Clients on other machines fetch them by
// names that mean nothing to a file system; others open them by their paths.
type announcedFiles struct {
	local bool

	mu    sync.Mutex
	paths map[string]string
}

// announcePath returns the name for path; "" for none.
func (a *announcedFiles) announcePath(path string) string {
	if a.local {
		return absolutePath(path)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if path == "" || len(a.paths) >= maxAnnounced {
		return ""
	}
	if a.paths == nil {
		a.paths = map[string]string{}
	}
	name := fmt.Sprintf("f%d", len(a.paths))
	a.paths[name] = path
	return name
}

// announceRecord returns r with names in place of the paths of this machine. Only streams that r
// does not have have one.
func (a *announcedFiles) announceRecord(r proposal.Record) proposal.Record {
	if a.local {
		return r
	}
	return relocateFiles(r, func(o proposal.Stream) string { return a.announcePath(o.File) })
}

// absolutePath returns path, if there is one, for clients, which have other working directories.
func absolutePath(path string) string {
	if full, err := filepath.Abs(path); err == nil && path != "" {
		return full
	}
	return path
}

// relocateFiles returns r with the files of its truncated streams as file says, and without others.
func relocateFiles(r proposal.Record, file func(proposal.Stream) string) proposal.Record {
	if r.Result == nil {
		return r
	}
	result := *r.Result
	for _, o := range []*proposal.Stream{&result.Stdout, &result.Stderr} {
		if !o.Truncated || o.File == "" {
			o.File = ""
			continue
		}
		o.File = file(*o)
	}
	result.Outputs = withoutCopies(result.Outputs)
	if result.Retried != nil {
		first := *result.Retried
		first.Stdout.File, first.Stderr.File, first.Outputs = "", "", withoutCopies(first.Outputs)
		result.Retried = &first
	}
	r.Result = &result
	return r
}

// withoutCopies returns the files without their copies' paths.
func withoutCopies(list []proposal.Output) []proposal.Output {
	out := make([]proposal.Output, len(list))
	for i, o := range list {
		out[i] = o
		out[i].File = ""
	}
	return out
}

func (s *server) handleArtifact(w http.ResponseWriter, r *http.Request, _ gate.Session) error {
	s.files.mu.Lock()
	path := s.files.paths[r.URL.Query().Get("name")]
	s.files.mu.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return refuseRequest("there is no such file", "")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_ = partHeader{Size: info.Size()}.sendPart(w, f)
	return nil
}

// handlePut answers with the Output of a file.
func (s *server) handlePut(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	data, err := readFile(w, r)
	if err != nil {
		return err
	}
	write := session.Put
	if r.URL.Query().Has("append") {
		write = session.PutPart
	}
	out, err := write(r.Context(), r.URL.Query().Get("path"), data)
	s.files.announceOutput(session, &out)
	sendAnswer(w, out, err)
	return nil
}

// handleTake answers with the Output and the data of a file.
func (s *server) handleTake(w http.ResponseWriter, r *http.Request, session gate.Session) error {
	q := r.URL.Query()
	take := session.Take
	if q.Has("offset") {
		offset, err := strconv.ParseInt(q.Get("offset"), 10, 64)
		size, err2 := strconv.ParseInt(q.Get("size"), 10, 64)
		if err != nil || err2 != nil {
			return refuseRequest("offset and size are not numbers", "")
		}
		take = func(ctx context.Context, name string) ([]byte, proposal.Output, error) {
			return session.TakePart(ctx, name, offset, size)
		}
	}
	data, out, err := take(r.Context(), q.Get("path"))
	if err != nil {
		return err
	}
	s.files.announceOutput(session, &out)
	_ = partHeader{Output: &out, Size: int64(len(data))}.sendPart(w, bytes.NewReader(data))
	return nil
}

// announceOutput sets the path of an Output's copy among the artifacts. A client on another machine
// gets none: it has the data.
func (a *announcedFiles) announceOutput(session gate.Session, out *proposal.Output) {
	if !a.local {
		out.File = ""
	}
	if out.File != "" {
		out.File = absolutePath(filepath.Join(session.Artifacts(), out.File))
	}
}

// withNameQuery returns path with a query that has a name of the workspace.
func withNameQuery(path, key, name string) (string, error) {
	if len(name) > maxName {
		return "", refuseRequest("the name has more than 16 KiB", "shorten it")
	}
	return path + "?" + url.Values{key: {name}}.Encode(), nil
}

// Put is gate.Session.Put, for at most 32 MiB.
func (s *Session) Put(ctx context.Context, name string, data []byte) (proposal.Output, error) {
	return s.writeFile(ctx, name, "", data)
}

// PutPart is gate.Session.PutPart, for at most 32 MiB.
func (s *Session) PutPart(ctx context.Context, name string, data []byte) (proposal.Output, error) {
	return s.writeFile(ctx, name, "&append", data)
}

func (s *Session) writeFile(ctx context.Context, name, how string, data []byte) (out proposal.Output, err error) {
	if len(data) > MaxFile {
		return out, refuseRequest(fmt.Sprintf("the file has more than %d MiB", MaxFile>>20), "put smaller files")
	}
	path, err := withNameQuery("/file", "path", name)
	if err != nil {
		return out, err
	}
	err = s.callServer(ctx, request{method: http.MethodPut, path: path + how, data: data}, &out)
	if !s.client.local {
		out.File = ""
	}
	return out, err
}

// Take is gate.Session.Take, for at most 128 MiB. Output.File is the path of the copy; empty if
// that is on another machine.
func (s *Session) Take(ctx context.Context, name string) ([]byte, proposal.Output, error) {
	return s.readFile(ctx, name, "")
}

// TakePart is gate.Session.TakePart.
func (s *Session) TakePart(ctx context.Context, name string, offset, size int64) ([]byte, proposal.Output, error) {
	return s.readFile(ctx, name, fmt.Sprintf("&offset=%d&size=%d", offset, size))
}

func (s *Session) readFile(ctx context.Context, name, which string) (data []byte, out proposal.Output, err error) {
	path, err := withNameQuery("/file", "path", name)
	if err != nil {
		return nil, out, err
	}
	err = s.getPart(ctx, path+which, func(p partHeader, body io.Reader) error {
		if p.Output == nil {
			return errors.New("there is no Output")
		}
		out = *p.Output
		data, err = io.ReadAll(body)
		return err
	})
	if !s.client.local {
		out.File = ""
	}
	return data, out, err
}

// getPart gets path, whose answer is a part and its data, and calls read with both.
func (s *Session) getPart(ctx context.Context, path string, read func(partHeader, io.Reader) error) error {
	if err := s.checkOpen(); err != nil {
		return err
	}
	ctx, cancel := s.withSession(ctx)
	defer cancel()
	answer, err := s.client.sendRequest(ctx, request{method: http.MethodGet, path: path, token: s.token})
	if err != nil {
		return causeOrError(ctx, err)
	}
	defer answer.Body.Close()
	return causeOrError(ctx, s.client.readPart(answer.Body, maxFailure, maxArtifact, read))
}

// readPart reads a part of at most line bytes, and calls read with its data, of at most max bytes.
func (c *Client) readPart(body io.Reader, line int, max int64, read func(partHeader, io.Reader) error) error {
	r := c.newReader(body, line, int64(line))
	text, err := r.readLine()
	if err != nil {
		return err
	}
	var p partHeader
	if err := decodeBounded(text, c.bounds.values, &p); err != nil {
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
		return c.lost(io.ErrUnexpectedEOF)
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

// fetchFiles returns r with copies in place of the files that it names.
func (x *command) fetchFiles(r proposal.Record) proposal.Record {
	if x.session.client.local {
		return r
	}
	return relocateFiles(r, func(o proposal.Stream) string { return x.session.copyFile(x.ctx, o.File) })
}

var copies atomic.Int64 // that this process has made, for their names

// copyFile returns the path of a new copy of the file that an answer calls name. It returns "" if
// there is none: callers then have the parts that the answer has.
func (s *Session) copyFile(ctx context.Context, name string) string {
	if name == "" || s.artifacts == "" {
		return ""
	}
	query, err := withNameQuery("/artifact", "name", name)
	if err != nil {
		return ""
	}
	path := filepath.Join(s.artifacts, fmt.Sprintf("%s-%d", s.id, copies.Add(1)))
	err = s.getPart(ctx, query, func(_ partHeader, data io.Reader) error { return createPrivateFile(path, data) })
	if err != nil {
		_ = os.Remove(path)
		return ""
	}
	return path
}

// createPrivateFile writes a new file that only this user can read.
func createPrivateFile(path string, data io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	return errors.Join(err, f.Sync(), f.Close())
}
