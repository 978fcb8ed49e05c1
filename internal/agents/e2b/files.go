// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// root is the workspace's path inside. Paths of the SDK are relative to it.
const root = "/workspace"

// inWorkspace returns a path of the SDK relative to the workspace; "." is the workspace.
func inWorkspace(name string) (string, error) {
	rel, below := strings.CutPrefix(name, root)
	outside := path.IsAbs(name) && !(below && (rel == "" || rel[0] == '/')) || name == "~" || strings.HasPrefix(name, "~/")
	if below {
		name = "./" + rel
	}
	clean := path.Clean(name)
	switch {
	case outside, clean == "..", strings.HasPrefix(clean, "../"):
		return "", refuse(invalidArgument, "the path %q is not in the workspace: use a relative path, or one below %s", text.Inline(name, 200), root)
	case strings.ContainsRune(name, 0), len(name) > document.MaxPath:
		return "", refuse(invalidArgument, "the path has a NUL or more than %d bytes", document.MaxPath)
	}
	return strings.TrimPrefix(clean, "/"), nil
}

func absolute(rel string) string { return path.Join(root, rel) }

// literal is a pattern that matches name alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// An entry is a file as the SDK knows it. Modes, owners and times are not known.
type entry struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Path string `json:"path"`
	Size string `json:"size,omitempty"`
}

var fileTypes = map[string]string{"file": "FILE_TYPE_FILE", "dir": "FILE_TYPE_DIRECTORY", "symlink": "FILE_TYPE_SYMLINK"}

func entryOf(c proposal.Change) entry {
	return entry{path.Base(absolute(c.Path)), fileTypes[c.Type], absolute(c.Path), strconv.FormatInt(c.Bytes, 10)}
}

// list returns the files that match pattern.
func (b *sandbox) list(ctx context.Context, pattern string) (proposal.Changes, error) {
	if err := b.wait(ctx); err != nil {
		return proposal.Changes{}, err
	}
	found, err := b.session.List(ctx, pattern)
	return found, b.failed(err)
}

// stat returns the file at a path of the SDK; its Type is "" if there is none.
func (b *sandbox) stat(ctx context.Context, name string) (proposal.Change, error) {
	rel, err := inWorkspace(name)
	if err != nil {
		return proposal.Change{}, err
	}
	found, err := b.list(ctx, literal.Replace(rel))
	if err != nil || len(found.Files) == 0 {
		return proposal.Change{Path: rel}, err
	}
	return proposal.Change{Path: rel, Type: found.Files[0].Type, Bytes: found.Files[0].Bytes}, nil
}

// existing is stat for what must be there.
func (b *sandbox) existing(ctx context.Context, name string) (proposal.Change, error) {
	f, err := b.stat(ctx, name)
	if err == nil && f.Type == "" {
		err = refuse(notFound, "there is no file %q", text.Inline(absolute(f.Path), 200))
	}
	return f, err
}

type pathRequest struct {
	Path string `json:"path"`
}

type listRequest struct {
	Path  string `json:"path"`
	Depth uint32 `json:"depth"`
}

type moveRequest struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

type watchRequest struct {
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
	Entry     bool   `json:"includeEntry"`
	Network   bool   `json:"allowNetworkMounts"`
	WatcherID string `json:"watcherId"`
}

func (s *Server) fileRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /files", s.inside(envdPort, failJSON, readFile))
	mux.HandleFunc("POST /files", s.inside(envdPort, failJSON, writeFiles))
	const service = "POST /filesystem.Filesystem/"
	mux.HandleFunc(service+"Stat", unary(s, func(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
		return oneEntry(b.existing(ctx, in.Path))
	}))
	mux.HandleFunc(service+"ListDir", unary(s, listDir))
	mux.HandleFunc(service+"MakeDir", unary(s, makeDir))
	mux.HandleFunc(service+"Move", unary(s, move))
	mux.HandleFunc(service+"Remove", unary(s, removeFile))
	watch := func() error { return refuse(unimplemented, "directories cannot be watched: list them") }
	mux.HandleFunc(service+"WatchDir", streaming(s, func(context.Context, *sandbox, watchRequest, *stream) error { return watch() }))
	for _, call := range []string{"CreateWatcher", "GetWatcherEvents", "RemoveWatcher"} {
		mux.HandleFunc(service+call, unary(s, func(context.Context, *sandbox, watchRequest) (any, error) { return nil, watch() }))
	}
}

func oneEntry(c proposal.Change, err error) (any, error) {
	return map[string]any{"entry": entryOf(c)}, err
}

const maxDepth = 32

// listDir lists a directory level by level. It does not follow links.
func listDir(ctx context.Context, b *sandbox, in listRequest) (any, error) {
	dir, err := b.existing(ctx, in.Path)
	switch {
	case err != nil:
		return nil, err
	case dir.Type != "dir":
		return nil, refuse(invalidArgument, "%q is not a directory", text.Inline(in.Path, 200))
	case in.Depth > maxDepth:
		return nil, refuse(invalidArgument, "depth: more than %d", maxDepth)
	}
	entries, dirs, pattern := []entry{}, map[string]bool{dir.Path: true}, literal.Replace(dir.Path)
	for depth := uint32(0); depth < max(in.Depth, 1) && len(dirs) > 0; depth++ {
		pattern = path.Join(pattern, "*")
		found, err := b.list(ctx, pattern)
		if err != nil {
			return nil, err
		}
		if found.Omitted > 0 {
			return nil, refuse(resourceExhausted, "there are more than %d files: list parts of the directory", len(found.Files))
		}
		below := map[string]bool{}
		for _, f := range found.Files {
			if !dirs[path.Dir(f.Path)] {
				continue // behind a link
			}
			entries = append(entries, entryOf(f))
			if f.Type == "dir" {
				below[f.Path] = true
			}
		}
		dirs = below
	}
	return map[string]any{"entries": entries}, nil
}

// change runs a command that changes files, as policy allows it.
func (b *sandbox) change(ctx context.Context, why string, argv ...string) error {
	r, err := b.do(ctx, b.session.Do, proposal.Proposal{Argv: argv, Why: why + " of the E2B SDK"})
	switch {
	case err != nil:
		return err
	case !r.Runnable():
		return refuse(permissionDenied, "policy refuses to change the file: %s", reasonsOf(r).line())
	case !r.Result.Succeeded():
		return refuse(invalidArgument, "%s: %s: %s", argv[0], ending(*r.Result), text.Inline(string(r.Result.Stderr.Head), 300))
	}
	return nil
}

func makeDir(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
	f, err := b.stat(ctx, in.Path)
	switch {
	case err != nil:
		return nil, err
	case f.Type == "dir":
		return nil, refuse(alreadyExists, "the directory %q exists", text.Inline(in.Path, 200))
	case f.Type != "":
		return nil, refuse(invalidArgument, "%q exists and is not a directory", text.Inline(in.Path, 200))
	}
	err = b.change(ctx, "files.makeDir", "mkdir", "-p", "--", f.Path)
	f.Type = "dir"
	return oneEntry(f, err)
}

func removeFile(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
	f, err := b.stat(ctx, in.Path)
	switch {
	case err != nil:
		return nil, err
	case f.Path == ".":
		return nil, refuse(invalidArgument, "the workspace itself cannot be removed")
	case f.Type == "":
		return map[string]any{}, nil
	}
	return map[string]any{}, b.change(ctx, "files.remove", "rm", "-rf", "--", f.Path)
}

func move(ctx context.Context, b *sandbox, in moveRequest) (any, error) {
	from, err := b.existing(ctx, in.Source)
	if err != nil {
		return nil, err
	}
	to, err := inWorkspace(in.Destination)
	if err != nil {
		return nil, err
	}
	if from.Path == "." || to == "." {
		return nil, refuse(invalidArgument, "the workspace itself cannot be renamed or replaced")
	}
	if parent := path.Dir(to); parent != "." {
		if err := b.change(ctx, "files.rename", "mkdir", "-p", "--", parent); err != nil {
			return nil, err
		}
	}
	if err := b.change(ctx, "files.rename", "mv", "-T", "--", from.Path, to); err != nil {
		return nil, err
	}
	from.Path = to
	return oneEntry(from, nil)
}

// hold waits until no other request of the sandbox has a file in memory. drop ends that.
func (b *sandbox) hold(ctx context.Context) error {
	select {
	case b.files <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return refuse(unavailable, "the sandbox has ended")
	}
}

func (b *sandbox) drop() { <-b.files }

// sameUser refuses users other than the one that all commands have.
func sameUser(name string) error {
	if name != "" && name != "user" {
		return refuse(invalidArgument, "the user %q is not supported: everything in a sandbox has one unprivileged user; leave user out", text.Inline(name, 100))
	}
	return nil
}

func readFile(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	if err := sameUser(r.URL.Query().Get("username")); err != nil {
		return err
	}
	f, err := b.existing(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	if f.Type != "file" {
		return refuse(invalidArgument, "%q is not a regular file", text.Inline(absolute(f.Path), 200))
	}
	if err := b.hold(r.Context()); err != nil {
		return err
	}
	defer b.drop()
	data, out, err := b.session.Take(r.Context(), f.Path)
	if err != nil {
		return b.failed(err)
	}
	if out.Refused != "" {
		return refuse(permissionDenied, "the file is refused: %s", out.Refused)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_ = write(w, data) // the client has gone
	return nil
}

// An upload is a file that a client writes.
type upload struct {
	path string // relative to the workspace
	data []byte
}

// writeFiles writes all files of a request, or none if one of them is not acceptable.
func writeFiles(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	if err := b.hold(r.Context()); err != nil {
		return err
	}
	defer b.drop()
	files, err := readUploads(w, r)
	if err != nil {
		return err
	}
	if err := b.wait(r.Context()); err != nil {
		return err
	}
	var wrote []map[string]any
	for _, f := range files {
		out, err := b.session.Put(r.Context(), f.path, f.data)
		if err != nil {
			return b.failed(err)
		}
		if out.Refused != "" {
			code := invalidArgument
			if strings.HasPrefix(out.Refused, "no space left") {
				code = noSpace
			}
			return refuse(code, "cannot write %q: %s; %d of %d files are written", text.Inline(f.path, 200), out.Refused, len(wrote), len(files))
		}
		wrote = append(wrote, map[string]any{"name": path.Base(f.path), "type": "file", "path": absolute(f.path)})
	}
	answer(w, http.StatusOK, wrote)
	return nil
}

func readUploads(w http.ResponseWriter, r *http.Request) (files []upload, err error) {
	q := r.URL.Query()
	if err := sameUser(q.Get("username")); err != nil {
		return nil, err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	zipped := r.Header.Get("Content-Encoding") == "gzip"
	if zipped {
		r.Header.Del("Content-Encoding")
	}
	data, readErr := readBody(w, r, maxUpload)
	if readErr != nil {
		return nil, readErr
	}
	if zipped {
		if data, readErr = unzip(data); readErr != nil {
			return nil, readErr
		}
	}
	switch {
	case err == nil && kind == "application/octet-stream":
		rel, err := target(q.Get("path"))
		return []upload{{rel, data}}, err
	case err == nil && kind == "multipart/form-data":
		return readForm(data, params["boundary"], q.Get("path"))
	}
	return nil, refuse(invalidArgument, "the content type is neither multipart/form-data nor application/octet-stream")
}

func target(name string) (string, error) {
	if name == "" {
		return "", refuse(invalidArgument, "path: missing")
	}
	rel, err := inWorkspace(name)
	if err == nil && (rel == "." || strings.HasSuffix(name, "/")) {
		err = refuse(invalidArgument, "the path %q is a directory", text.Inline(name, 200))
	}
	return rel, err
}

func unzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(z, maxUpload+1))
	}
	if err != nil {
		return nil, refuse(invalidArgument, "the request is not gzip: %v", err)
	}
	if len(data) > maxUpload {
		return nil, refuse(resourceExhausted, "the request has more than %d bytes", maxUpload)
	}
	return data, nil
}

const maxFiles = 200 // of one request

// readForm reads the files of a form. The only one may have its path in the URL.
func readForm(data []byte, boundary, only string) (files []upload, err error) {
	form := multipart.NewReader(bytes.NewReader(data), boundary)
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refuse(invalidArgument, "invalid form: %v", err)
		}
		name := only
		if name == "" { // FileName cuts the directories off
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			name = params["filename"]
		}
		rel, err := target(name)
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, refuse(invalidArgument, "invalid form: %v", err)
		}
		if files = append(files, upload{rel, content}); len(files) > maxFiles {
			return nil, refuse(invalidArgument, "more than %d files", maxFiles)
		}
	}
	switch {
	case len(files) == 0:
		return nil, refuse(invalidArgument, "the form has no file")
	case only != "" && len(files) > 1:
		return nil, refuse(invalidArgument, "%s", fmt.Sprintf("%d files for one path", len(files)))
	}
	return files, nil
}
