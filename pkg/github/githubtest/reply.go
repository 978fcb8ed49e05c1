// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// call is one request on its way to its handler, under the lock.
type call struct {
	op     string
	r      *http.Request
	params map[string]string
	body   []byte
	in     *openapi3filter.RequestValidationInput
	repo   *repository
	token  *Token // nil: nobody; handlers get an empty one instead
}

// reply is what a handler answers. A sparse body is completed by the description.
type reply struct {
	status int // 0 is 200
	body   any
	header http.Header
	listed bool   // list is the answer, page by page
	list   []any  // everything there is
	key    string // the field that the page goes into, beside total_count
	raw    []byte // the body as it is, for other media types
}

var notFound = refuse(http.StatusNotFound, "Not Found")

// refuse is GitHub's way to say no.
func refuse(status int, message string) reply {
	return reply{status: status, body: obj{
		"message": message, "status": strconv.Itoa(status),
		"documentation_url": "https://docs.github.com/rest",
	}}
}

// invalid is GitHub's way to say that a field will not do.
func invalid(resource, field, code, message string) reply {
	problem := obj{"resource": resource, "code": code, "field": field}
	if message != "" {
		problem["message"] = message
	}
	r := refuse(http.StatusUnprocessableEntity, "Validation Failed")
	r.body.(obj)["errors"] = []any{problem}
	return r
}

// number reads a numeric path parameter; -1 is no number.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.params[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (s *Server) api(r *repository, format string, a ...any) string {
	return s.URL + "/repos/" + r.Name + fmt.Sprintf(format, a...)
}

func (s *Server) page(r *repository, format string, a ...any) string {
	return s.options.ServerURL + "/" + r.Name + fmt.Sprintf(format, a...)
}

// orNil is null for a zero value.
func orNil[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
