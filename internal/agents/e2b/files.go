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
	outside := path.IsAbs(name) && !(below && (rel == "" || rel[0] == '/')) || name == "~" ||
		strings.HasPrefix(name, "~/")
	if below {
		name = "./" + rel
	}
	clean := path.Clean(name)
	switch {
	case outside, clean == "..", strings.HasPrefix(clean, "../"):
		return "", refuseRequest(invalidArgument,
			"the path %q is not in the workspace: use a relative path, or one below %s", text.Inline(name, 200), root)
	case strings.ContainsRune(name, 0), len(name) > document.MaxPath:
		return "", refuseRequest(invalidArgument, "the path has a NUL or more than %d bytes", document.MaxPath)
	}
	return strings.TrimPrefix(clean, "/"), nil
}

func absolutePath(rel string) string { return path.Join(root, rel) }

// literal is a pattern that matches name alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// An entry is a file as the SDK knows it. Modes, owners and times are not known.
type entry struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
	Path string `json:"path"`
	Size string `json:"size,omitempty"`
}

var fileTypes = map[string]string{"file": "FILE_TYPE_FILE", "dir": "FILE_TYPE_DIRECTORY",
	"symlink": "FILE_TYPE_SYMLINK"}

func entryOf(c proposal.Change) entry {
	return entry{path.Base(absolutePath(c.Path)), fileTypes[c.Type], absolutePath(c.Path),
		strconv.FormatInt(c.Bytes, 10)}
}

// listFiles returns the files that match pattern.
func (b *sandbox) listFiles(ctx context.Context, pattern string) (proposal.Changes, error) {
	if err := b.waitForSetUp(ctx); err != nil {
		return proposal.Changes{}, err
	}
	found, err := b.session.List(ctx, pattern)
	return found, b.endOnError(err)
}

// statFile returns the file at a path of the SDK; its Type is "" if there is none.
func (b *sandbox) statFile(ctx context.Context, name string) (proposal.Change, error) {
	rel, err := inWorkspace(name)
	if err != nil {
		return proposal.Change{}, err
	}
	found, err := b.listFiles(ctx, literal.Replace(rel))
	if err != nil || len(found.Files) == 0 {
		return proposal.Change{Path: rel}, err
	}
	return proposal.Change{Path: rel, Type: found.Files[0].Type, Bytes: found.Files[0].Bytes}, nil
}

// statExisting is statFile for what must be there.
func (b *sandbox) statExisting(ctx context.Context, name string) (proposal.Change, error) {
	f, err := b.statFile(ctx, name)
	if err == nil && f.Type == "" {
		err = refuseRequest(notFound, "there is no file %q", text.Inline(absolutePath(f.Path), 200))
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
	mux.HandleFunc("GET /files", s.serveInSandbox(envdPort, failJSON, readFile))
	mux.HandleFunc("POST /files", s.serveInSandbox(envdPort, failJSON, writeFiles))
	const service = "POST /filesystem.Filesystem/"
	mux.HandleFunc(service+"Stat", serveUnary(s, func(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
		return oneEntry(b.statExisting(ctx, in.Path))
	}))
	mux.HandleFunc(service+"ListDir", serveUnary(s, listDir))
	mux.HandleFunc(service+"MakeDir", serveUnary(s, makeDir))
	mux.HandleFunc(service+"Move", serveUnary(s, moveFile))
	mux.HandleFunc(service+"Remove", serveUnary(s, removeFile))
	watch := func() error { return refuseRequest(unimplemented, "directories cannot be watched: list them") }
	mux.HandleFunc(service+"WatchDir",
		serveStreaming(s, func(context.Context, *sandbox, watchRequest, *stream) error { return watch() }))
	for _, call := range []string{"CreateWatcher", "GetWatcherEvents", "RemoveWatcher"} {
		mux.HandleFunc(service+call, serveUnary(s,
			func(context.Context, *sandbox, watchRequest) (any, error) { return nil, watch() }))
	}
}

func oneEntry(c proposal.Change, err error) (any, error) {
	return map[string]any{"entry": entryOf(c)}, err
}

const maxDepth = 32

// listDir lists a directory level by level. It does not follow links.
func listDir(ctx context.Context, b *sandbox, in listRequest) (any, error) {
	dir, err := b.statExisting(ctx, in.Path)
	switch {
	case err != nil:
		return nil, err
	case dir.Type != "dir":
		return nil, refuseRequest(invalidArgument, "%q is not a directory", text.Inline(in.Path, 200))
	case in.Depth > maxDepth:
		return nil, refuseRequest(invalidArgument, "depth: more than %d", maxDepth)
	}
	entries, dirs, pattern := []entry{}, map[string]bool{dir.Path: true}, literal.Replace(dir.Path)
	for depth := uint32(0); depth < max(in.Depth, 1) && len(dirs) > 0; depth++ {
		pattern = path.Join(pattern, "*")
		found, err := b.listFiles(ctx, pattern)
		if err != nil {
			return nil, err
		}
		if found.Omitted > 0 {
			return nil, refuseRequest(resourceExhausted, "there are more than %d files: list parts of the directory",
				len(found.Files))
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

// changeFiles runs a command that changes files, as policy allows it.
func (b *sandbox) changeFiles(ctx context.Context, why string, argv ...string) error {
	r, err := b.proposeAfterSetUp(ctx, b.session.Do, proposal.Proposal{Argv: argv, Why: why + " of the E2B SDK"})
	switch {
	case err != nil:
		return err
	case !r.Runnable():
		return refuseRequest(permissionDenied, "policy refuses to change the file: %s", reasonsOf(r).joinLines())
	case !r.Result.Succeeded():
		return refuseRequest(invalidArgument, "%s: %s: %s", argv[0], describeEnd(*r.Result),
			text.Inline(string(r.Result.Stderr.Head), 300))
	}
	return nil
}

func makeDir(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
	f, err := b.statFile(ctx, in.Path)
	switch {
	case err != nil:
		return nil, err
	case f.Type == "dir":
		return nil, refuseRequest(alreadyExists, "the directory %q exists", text.Inline(in.Path, 200))
	case f.Type != "":
		return nil, refuseRequest(invalidArgument, "%q exists and is not a directory", text.Inline(in.Path, 200))
	}
	err = b.changeFiles(ctx, "files.makeDir", "mkdir", "-p", "--", f.Path)
	f.Type = "dir"
	return oneEntry(f, err)
}

func removeFile(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
	f, err := b.statFile(ctx, in.Path)
	switch {
	case err != nil:
		return nil, err
	case f.Path == ".":
		return nil, refuseRequest(invalidArgument, "the workspace itself cannot be removed")
	case f.Type == "":
		return map[string]any{}, nil
	}
	return map[string]any{}, b.changeFiles(ctx, "files.remove", "rm", "-rf", "--", f.Path)
}

func moveFile(ctx context.Context, b *sandbox, in moveRequest) (any, error) {
	from, err := b.statExisting(ctx, in.Source)
	if err != nil {
		return nil, err
	}
	to, err := inWorkspace(in.Destination)
	if err != nil {
		return nil, err
	}
	if from.Path == "." || to == "." {
		return nil, refuseRequest(invalidArgument, "the workspace itself cannot be renamed or replaced")
	}
	if parent := path.Dir(to); parent != "." {
		if err := b.changeFiles(ctx, "files.rename", "mkdir", "-p", "--", parent); err != nil {
			return nil, err
		}
	}
	if err := b.changeFiles(ctx, "files.rename", "mv", "-T", "--", from.Path, to); err != nil {
		return nil, err
	}
	from.Path = to
	return oneEntry(from, nil)
}

// lockFiles waits until no other request of the sandbox has a file in memory. drop ends that.
func (b *sandbox) lockFiles(ctx context.Context) error {
	select {
	case b.files <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return refuseRequest(unavailable, "the sandbox has ended")
	}
}

func (b *sandbox) unlockFiles() { <-b.files }

// sameUser refuses users other than the one that all commands have.
func sameUser(name string) error {
	if name != "" && name != "user" {
		return refuseRequest(invalidArgument,
			"the user %q is not supported: everything in a sandbox has one unprivileged user; leave user out", text.Inline(name, 100))
	}
	return nil
}

func readFile(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	if err := sameUser(r.URL.Query().Get("username")); err != nil {
		return err
	}
	f, err := b.statExisting(r.Context(), r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	if f.Type != "file" {
		return refuseRequest(invalidArgument, "%q is not a regular file", text.Inline(absolutePath(f.Path), 200))
	}
	if err := b.lockFiles(r.Context()); err != nil {
		return err
	}
	defer b.unlockFiles()
	data, out, err := b.session.Take(r.Context(), f.Path)
	if err != nil {
		return b.endOnError(err)
	}
	if out.Refused != "" {
		return refuseRequest(permissionDenied, "the file is refused: %s", out.Refused)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_ = writeWithDeadline(w, data) // the client has gone
	return nil
}

// An upload is a file that a client writes.
type upload struct {
	path string // relative to the workspace
	data []byte
}

// writeFiles writes all files of a request, or none if one of them is not acceptable.
func writeFiles(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	if err := b.lockFiles(r.Context()); err != nil {
		return err
	}
	defer b.unlockFiles()
	files, err := readUploads(w, r)
	if err != nil {
		return err
	}
	if err := b.waitForSetUp(r.Context()); err != nil {
		return err
	}
	var wrote []map[string]any
	for _, f := range files {
		out, err := b.session.Put(r.Context(), f.path, f.data)
		if err != nil {
			return b.endOnError(err)
		}
		if out.Refused != "" {
			code := invalidArgument
			if strings.HasPrefix(out.Refused, "no space left") {
				code = noSpace
			}
			return refuseRequest(code, "cannot write %q: %s; %d of %d files are written", text.Inline(f.path, 200),
				out.Refused, len(wrote), len(files))
		}
		wrote = append(wrote, map[string]any{"name": path.Base(f.path), "type": "file", "path": absolutePath(f.path)})
	}
	sendAnswer(w, http.StatusOK, wrote)
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
		if data, readErr = decompressGzip(data); readErr != nil {
			return nil, readErr
		}
	}
	switch {
	case err == nil && kind == "application/octet-stream":
		rel, err := writablePath(q.Get("path"))
		return []upload{{rel, data}}, err
	case err == nil && kind == "multipart/form-data":
		return readForm(data, params["boundary"], q.Get("path"))
	}
	return nil, refuseRequest(invalidArgument,
		"the content type is neither multipart/form-data nor application/octet-stream")
}

func writablePath(name string) (string, error) {
	if name == "" {
		return "", refuseRequest(invalidArgument, "path: missing")
	}
	rel, err := inWorkspace(name)
	if err == nil && (rel == "." || strings.HasSuffix(name, "/")) {
		err = refuseRequest(invalidArgument, "the path %q is a directory", text.Inline(name, 200))
	}
	return rel, err
}

func decompressGzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(z, maxUpload+1))
	}
	if err != nil {
		return nil, refuseRequest(invalidArgument, "the request is not gzip: %v", err)
	}
	if len(data) > maxUpload {
		return nil, refuseRequest(resourceExhausted, "the request has more than %d bytes", maxUpload)
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
			return nil, refuseRequest(invalidArgument, "invalid form: %v", err)
		}
		name := only
		if name == "" { // FileName cuts the directories off
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			name = params["filename"]
		}
		rel, err := writablePath(name)
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, refuseRequest(invalidArgument, "invalid form: %v", err)
		}
		if files = append(files, upload{rel, content}); len(files) > maxFiles {
			return nil, refuseRequest(invalidArgument, "more than %d files", maxFiles)
		}
	}
	switch {
	case len(files) == 0:
		return nil, refuseRequest(invalidArgument, "the form has no file")
	case only != "" && len(files) > 1:
		return nil, refuseRequest(invalidArgument, "%s", fmt.Sprintf("%d files for one path", len(files)))
	}
	return files, nil
}
