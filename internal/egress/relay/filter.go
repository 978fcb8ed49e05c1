// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// firstPart is the part of a body that is searched for secrets, in bytes. A body is
// held back until that much, or all of it, has arrived.
const firstPart = 64 << 10

// searchedRequest is the searched part of a request.
type searchedRequest struct {
	url    string
	header http.Header
	body   []byte
}

// searchRequest searches the request for secrets and lists them in egress.
func (x *exchange) searchRequest() (*searchedRequest, *refusal) {
	scan := x.session.relay.options.Scan
	if scan == nil {
		return nil, &refusal{code: "filter", message: "no scanner is set that could search the request for secrets"}
	}
	body, err := x.firstPart()
	if err != nil {
		return nil, &refusal{code: "protocol", message: "the body was cut off", status: http.StatusBadRequest}
	}
	f := &searchedRequest{x.in.URL.RequestURI(), x.in.Header, body}
	x.egress.Secrets, x.searched = scan(f.url, f.header, f.body), true
	return f, nil
}

// firstPart returns the first part of the body, which can still be read.
func (x *exchange) firstPart() ([]byte, error) {
	r := x.in
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	buffered := bufio.NewReaderSize(r.Body, firstPart)
	part, err := buffered.Peek(firstPart)
	if err != nil && err != io.EOF {
		return nil, err
	}
	r.Body = body{buffered, r.Body}
	return bytes.Clone(part), nil
}

type body struct {
	io.Reader
	io.Closer
}

// redactRequest replaces f with its redacted form.
func (x *exchange) redactRequest(f *searchedRequest) *refusal {
	redact, r := x.session.relay.options.Redact, x.in
	if redact == nil {
		return &refusal{code: "filter", message: "no redactor is set that could remove secrets"}
	}
	address, header, part := redact(f.url, f.header, f.body)
	u, err := url.ParseRequestURI(address)
	if err != nil || u.EscapedPath() != r.URL.EscapedPath() {
		return &refusal{code: "filter", message: "the path contains a secret, which cannot be removed there"}
	}
	r.URL, r.Header = u, header
	if len(f.body) == 0 {
		return nil
	}
	if _, err := io.CopyN(io.Discard, r.Body, int64(len(f.body))); err != nil {
		return &refusal{code: "protocol", message: "the body was cut off", status: http.StatusBadRequest}
	}
	r.Body = body{io.MultiReader(strings.NewReader(string(part)), r.Body), r.Body}
	if r.ContentLength >= 0 {
		r.ContentLength += int64(len(part) - len(f.body))
	}
	return nil
}
