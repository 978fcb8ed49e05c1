// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

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

// unprivilegedUser refuses users that no sandbox has. root is a wish: everything in a sandbox has one
// unprivileged user.
func unprivilegedUser(name string) error {
	if name != "" && name != "user" && name != "root" {
		return refuseRequest(invalidArgument,
			"the user %q is not supported: everything in a sandbox has one unprivileged user; leave user out",
			text.Inline(name, 100))
	}
	return nil
}

func (s *Server) fileRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /files", s.serveFiles("read", readFile))
	mux.HandleFunc("POST /files", s.serveFiles("write", writeFiles))
	const service = "POST /filesystem.Filesystem/"
	mux.HandleFunc(service+"Stat", serveUnary(s, func(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
		p, err := findPlace(in.Path)
		if err != nil {
			return nil, err
		}
		return oneEntry(b.statFile(ctx, p))
	}))
	mux.HandleFunc(service+"ListDir", serveUnary(s, listDir))
	mux.HandleFunc(service+"MakeDir", serveUnary(s, makeDir))
	mux.HandleFunc(service+"Move", serveUnary(s, moveFile))
	mux.HandleFunc(service+"Remove", serveUnary(s, removeFile))
	s.watchRoutes(mux, service)
}

// serveFiles serves a request for files, with a token or with a signed URL.
func (s *Server) serveFiles(
	operation string, f func(http.ResponseWriter, *http.Request, *sandbox) error,
) http.HandlerFunc {
	withToken := s.serveInSandbox(envdPort, failJSON, f)
	return func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("signature") || r.Header.Get("X-Access-Token") != "" {
			withToken(w, r)
			return
		}
		b, err := s.findSigned(r, operation)
		if err != nil {
			failJSON(w, err)
			return
		}
		s.serveRequest(w, r, b, failJSON, f)
	}
}

// findSigned returns the sandbox whose access token has signed the URL of r. With E2B_SANDBOX_URL the URL does not name
// the sandbox.
func (s *Server) findSigned(r *http.Request, operation string) (*sandbox, error) {
	q := r.URL.Query()
	signed := q.Get("path") + ":" + operation + ":" + q.Get("username") + ":"
	suffix := ""
	if q.Has("signature_expiration") {
		suffix = ":" + q.Get("signature_expiration")
	}
	given := []byte(q.Get("signature"))
	var found *sandbox
	s.mu.Lock()
	for _, b := range s.sandboxes {
		sum := sha256.Sum256([]byte(signed + b.access + suffix))
		if subtle.ConstantTimeCompare(given, []byte("v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))) == 1 {
			found = b
		}
	}
	s.mu.Unlock()
	if found == nil {
		return nil, refuseRequest(unauthenticated, "the signature is not of a sandbox that is running")
	}
	if suffix != "" {
		until, err := strconv.ParseInt(suffix[1:], 10, 64)
		if err != nil || until <= time.Now().Unix() {
			return nil, &refusal{code: unauthenticated, message: "signature is already expired", plain: true}
		}
	}
	return found, nil
}

func oneEntry(e entry, err error) (any, error) { return map[string]any{"entry": e}, err }

// runForFiles runs a command of files.*, as policy allows it. That it fails is no error.
func (b *sandbox) runForFiles(ctx context.Context, why string, p proposal.Proposal) (proposal.Record, error) {
	p.Why = why + " of the E2B SDK"
	r, err := b.proposeAfterSetUp(ctx, b.session.Do, p)
	if err == nil && !r.Runnable() {
		err = refuseRequest(permissionDenied, "policy refuses to reach the file: %s", reasonsOf(r).joinLines())
	}
	return r, err
}

// changeFiles runs a text that changes files and must succeed.
func (b *sandbox) changeFiles(ctx context.Context, why string, words ...string) error {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !slices.Contains(shellOperators, word) && strings.Trim(word, shellPlain) != "" {
			quoted[i] = quoteWord(word)
		}
	}
	r, err := b.runForFiles(ctx, why, proposal.Proposal{Run: strings.Join(quoted, " ")})
	switch {
	case err != nil:
		return err
	case !r.Result.Succeeded():
		return refuseRequest(invalidArgument, "%s: %s: %s", words[0], describeEnd(*r.Result),
			text.Inline(string(r.Result.Stderr.Head), 300))
	}
	b.noteChange()
	return nil
}

// shellOperators are the words of changeFiles that are no arguments. A place's argument is none of them: it begins
// with a dot or a slash.
var shellOperators = []string{"&&", "|", ">", ">>"}

// shellPlain are the characters of words that need no quotes.
const shellPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+./_"

const maxDepth = 32

// listDir lists a directory. It does not follow links.
func listDir(ctx context.Context, b *sandbox, in listRequest) (any, error) {
	if in.Depth > maxDepth {
		return nil, refuseRequest(invalidArgument, "depth: more than %d", maxDepth)
	}
	p, err := findPlace(in.Path)
	if err != nil {
		return nil, err
	}
	list, err := b.listFiles(ctx, p, max(in.Depth, 1))
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0 || list[0].below != "" || list[0].Type != typeDirectory:
		return nil, refuseRequest(invalidArgument, "%q is not a directory", text.Inline(in.Path, 200))
	}
	return map[string]any{"entries": append([]entry{}, list[1:]...)}, nil
}

func makeDir(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
	p, err := findPlace(in.Path)
	if err != nil {
		return nil, err
	}
	e, err := b.statIfThere(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case e.Type == typeDirectory:
		return nil, refuseRequest(alreadyExists, "the directory %q exists", text.Inline(in.Path, 200))
	case e.Path != "":
		return nil, refuseRequest(invalidArgument, "%q exists and is not a directory", text.Inline(in.Path, 200))
	}
	if err := b.changeFiles(ctx, "files.makeDir", "mkdir", "-p", "--", p.argument()); err != nil {
		return nil, err
	}
	return oneEntry(b.statFile(ctx, p))
}

func removeFile(ctx context.Context, b *sandbox, in pathRequest) (any, error) {
	p, err := findPlace(in.Path)
	switch {
	case err != nil:
		return nil, err
	case p.isRoot():
		return nil, refuseRequest(invalidArgument, "the workspace itself cannot be removed")
	}
	if err := b.changeFiles(ctx, "files.remove", "rm", "-rf", "--", p.argument()); err != nil {
		return nil, err
	}
	b.metadata.remove(p.shown)
	return map[string]any{}, nil
}

func moveFile(ctx context.Context, b *sandbox, in moveRequest) (any, error) {
	from, err := findPlace(in.Source)
	if err != nil {
		return nil, err
	}
	to, err := findPlace(in.Destination)
	if err != nil {
		return nil, err
	}
	if from.isRoot() || to.isRoot() {
		return nil, refuseRequest(invalidArgument, "the workspace itself cannot be renamed or replaced")
	}
	if _, err := b.statFile(ctx, from); err != nil {
		return nil, err
	}
	if err := b.changeFiles(ctx, "files.rename", "mkdir", "-p", "--", path.Dir(to.argument()), "&&", "mv", "-T", "--",
		from.argument(), to.argument()); err != nil {
		return nil, err
	}
	b.metadata.move(from.shown, to.shown)
	return oneEntry(b.statFile(ctx, to))
}

// transferName is a name in the workspace for a file on its way. Its user holds lockFiles.
const transferName = ".fumehood-transfer"

// partSize is the size of the parts in which a large file is read and written.
const partSize = 16 << 20

func readFile(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	if err := unprivilegedUser(r.URL.Query().Get("username")); err != nil {
		return err
	}
	p, err := findPlace(r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	ctx := r.Context()
	e, err := b.statFile(ctx, p)
	if err != nil {
		return err
	}
	if e.Type == typeDirectory || e.Type == "" {
		return refuseRequest(invalidArgument, "%q is not a regular file", text.Inline(p.shown, 200))
	}
	if err := b.lockFiles(ctx); err != nil {
		return err
	}
	defer b.unlockFiles()
	size, _ := strconv.ParseInt(e.Size, 10, 64)
	if p.rel == "" || e.Type != fileTypes["f"] {
		return b.sendCopied(ctx, w, p)
	}
	if size > partSize {
		return sendParts(w, func(at int64) ([]byte, bool, error) {
			data, err := b.takeFile(b.session.TakePart(ctx, p.rel, at, partSize))
			return data, at+partSize < size && len(data) > 0, err // the sandbox has said what size is
		})
	}
	data, err := b.takeFile(b.session.Take(ctx, p.rel))
	if err == nil {
		startDownload(w)
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_ = writeWithDeadline(w, data) // the client has gone
	}
	return err
}

func startDownload(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

// takeFile returns what the session has taken, redacted, as far as policy allows it to leave.
func (b *sandbox) takeFile(data []byte, out proposal.Output, err error) ([]byte, error) {
	if err != nil {
		return nil, b.endOnError(err)
	}
	if out.Refused != "" {
		return nil, refuseRequest(permissionDenied, "the file is refused: %s", out.Refused)
	}
	return data, nil
}

// sendCopied sends a file that the session cannot take: commands copy it to the workspace part by part.
func (b *sandbox) sendCopied(ctx context.Context, w http.ResponseWriter, p place) error {
	defer func() { _ = b.changeFiles(context.WithoutCancel(ctx), "files.read", "rm", "-f", transferName) }()
	return sendParts(w, func(at int64) ([]byte, bool, error) {
		err := b.changeFiles(ctx, "files.read", "tail", "-c", "+"+strconv.FormatInt(at+1, 10), "--", p.argument(), "|",
			"head", "-c", strconv.Itoa(partSize), ">", transferName)
		if err != nil {
			return nil, false, err
		}
		data, err := b.takeFile(b.session.TakePart(ctx, transferName, 0, partSize))
		return data, len(data) >= partSize/2, err // redaction changes the length
	})
}

// sendParts sends a file whose parts take returns: it also says whether there may be more. One part is taken while the
// one before is sent. An error after the first part cuts the connection off: the client must not take what it has for
// the whole.
func sendParts(w http.ResponseWriter, take func(at int64) (data []byte, more bool, err error)) error {
	type part struct {
		data []byte
		more bool
		err  error
	}
	taken := make(chan part, 1)
	takeNext := func(at int64) {
		data, more, err := take(at)
		taken <- part{data, more, err}
	}
	go takeNext(0)
	for at := int64(0); ; at += partSize {
		one := <-taken
		if one.err != nil && at == 0 {
			return one.err
		}
		if one.err != nil {
			panic(http.ErrAbortHandler)
		}
		if at == 0 {
			startDownload(w)
		}
		if one.more {
			go takeNext(at + partSize)
		}
		err := writeWithDeadline(w, one.data)
		if err != nil && one.more {
			<-taken // the caller's files are its own until then
		}
		if err != nil || !one.more {
			return nil
		}
	}
}

// writeFiles writes the files of a request. Small ones are written when all of them are acceptable.
func writeFiles(w http.ResponseWriter, r *http.Request, b *sandbox) error {
	q := r.URL.Query()
	if err := unprivilegedUser(q.Get("username")); err != nil {
		return err
	}
	metadata, err := readMetadata(r.Header)
	if err != nil {
		return err
	}
	if err := b.waitForSetUp(r.Context()); err != nil {
		return err
	}
	if err := b.lockFiles(r.Context()); err != nil {
		return err
	}
	defer b.unlockFiles()
	body, err := uploadBody(w, r)
	if err != nil {
		return err
	}
	u := &uploads{b: b, ctx: r.Context()}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err == nil && kind == "application/octet-stream":
		err = u.addFile(q.Get("path"), body)
	case err == nil && kind == "multipart/form-data":
		err = u.addForm(body, params["boundary"], q.Get("path"))
	default:
		err = refuseRequest(invalidArgument,
			"the content type is neither multipart/form-data nor application/octet-stream")
	}
	if err == nil {
		err = u.writeSmall()
	}
	b.noteChange()
	if err != nil {
		return err
	}
	wrote := []map[string]any{}
	for _, p := range u.wrote {
		info := map[string]any{"name": path.Base(p.shown), "type": "file", "path": p.shown}
		if b.metadata.set(p.shown, metadata); len(metadata) > 0 {
			info["metadata"] = metadata
		}
		wrote = append(wrote, info)
	}
	sendAnswer(w, http.StatusOK, wrote)
	return nil
}

// uploadBody returns the body of an upload, decompressed. It has maxUpload bytes at most, and each read has its time.
func uploadBody(w http.ResponseWriter, r *http.Request) (io.Reader, error) {
	var body io.Reader = &timedReader{http.NewResponseController(w), http.MaxBytesReader(w, r.Body, maxUpload)}
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return body, nil
	case "gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, refuseRequest(invalidArgument, "the request is not gzip: %v", err)
		}
		return &cappedReader{z, maxUpload}, nil
	default:
		return nil, refuseRequest(unimplemented, "the content encoding %q is not supported", encoding)
	}
}

// A timedReader gives each read its own time.
type timedReader struct {
	timed *http.ResponseController
	r     io.Reader
}

func (t *timedReader) Read(p []byte) (int, error) {
	_ = t.timed.SetReadDeadline(time.Now().Add(bodyTime))
	n, err := t.r.Read(p)
	if err != nil {
		_ = t.timed.SetReadDeadline(time.Time{})
	}
	return n, err
}

// A cappedReader fails after some bytes.
type cappedReader struct {
	r    io.Reader
	left int64
}

func (c *cappedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, &http.MaxBytesError{Limit: maxUpload}
	}
	return n, err
}

// An upload is a small file that a client writes.
type upload struct {
	place place
	data  []byte
}

// uploads are the files of one request.
type uploads struct {
	b     *sandbox
	ctx   context.Context
	small []upload
	bytes int
	wrote []place
}

const maxFiles = 200 // of one request

// addForm adds the files of a form. The only one may have its path in the URL.
func (u *uploads) addForm(body io.Reader, boundary, only string) error {
	form := multipart.NewReader(body, boundary)
	for count := 0; ; count++ {
		part, err := form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF) && count == 0:
			return refuseRequest(invalidArgument, "the form has no file")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return formError(err)
		case count == maxFiles:
			return refuseRequest(invalidArgument, "more than %d files", maxFiles)
		case count == 1 && only != "":
			return refuseRequest(invalidArgument, "several files for one path")
		}
		name := only
		if name == "" { // FileName cuts the directories off
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			name = params["filename"]
		}
		if err := u.addFile(name, part); err != nil {
			return err
		}
	}
}

func formError(err error) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return refuseRequest(noSpace, "the request has more than %d bytes", long.Limit)
	}
	return refuseRequest(invalidArgument, "invalid form: %v", err)
}

// addFile keeps a small file, or writes a large one.
func (u *uploads) addFile(name string, content io.Reader) error {
	p, err := writablePlace(name)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(content, 64<<10)
	data, more, err := readPart(in)
	if err != nil {
		return formError(err)
	}
	if u.bytes += len(data); !more && u.bytes <= partSize {
		u.small = append(u.small, upload{p, data})
		return nil
	}
	if err := u.writeSmall(); err != nil {
		return err
	}
	return u.writeParts(p, data, more, in)
}

// readPart reads up to partSize bytes, and says whether there are more.
func readPart(in *bufio.Reader) (data []byte, more bool, err error) {
	if data, err = io.ReadAll(io.LimitReader(in, partSize)); err != nil {
		return nil, false, err
	}
	_, err = in.Peek(1)
	if errors.Is(err, io.EOF) {
		return data, false, nil
	}
	return data, err == nil, err
}

// writeSmall writes the files that were kept.
func (u *uploads) writeSmall() error {
	for _, f := range u.small {
		if err := u.writeFile(f.place, f.data); err != nil {
			return err
		}
		u.wrote = append(u.wrote, f.place)
	}
	u.small, u.bytes = nil, 0
	return nil
}

func (u *uploads) writeFile(p place, data []byte) error {
	session := u.b.session
	if p.rel != "" {
		return u.putData(session.Put, p.rel, data)
	}
	if err := u.putData(session.Put, transferName, data); err != nil {
		return err
	}
	return u.moveUpload(transferName, p)
}

// moveUpload moves a file of the workspace to its place.
func (u *uploads) moveUpload(rel string, p place) error {
	return u.b.changeFiles(u.ctx, "files.write", "mkdir", "-p", "--", path.Dir(p.argument()), "&&", "mv", "-T", "--",
		"./"+rel, p.argument())
}

// writeParts writes a large file: part by part to a file of the workspace, which then gets its name.
func (u *uploads) writeParts(p place, data []byte, more bool, in *bufio.Reader) error {
	session, part := u.b.session, transferName
	if p.rel != "" {
		part = p.rel + ".part"
	}
	err := u.putData(session.Put, part, data)
	for more && err == nil {
		if data, more, err = readPart(in); err != nil {
			err = formError(err)
		} else {
			err = u.putData(session.PutPart, part, data)
		}
	}
	if err == nil {
		err = u.moveUpload(part, p)
	}
	if err != nil {
		_ = u.b.changeFiles(context.WithoutCancel(u.ctx), "files.write", "rm", "-f", "--", "./"+part)
		return err
	}
	u.wrote = append(u.wrote, p)
	return nil
}

// putData writes a file of the workspace, or its end, with put.
func (u *uploads) putData(
	put func(context.Context, string, []byte) (proposal.Output, error), rel string, data []byte,
) error {
	out, err := put(u.ctx, rel, data)
	if err != nil {
		return u.b.endOnError(err)
	}
	if out.Refused == "" {
		return nil
	}
	code := invalidArgument
	if strings.HasPrefix(out.Refused, "no space left") {
		code = noSpace
	}
	return refuseRequest(code, "cannot write %q: %s; %s", text.Inline(rel, 200), out.Refused,
		fmt.Sprintf("%d files are written", len(u.wrote)))
}
