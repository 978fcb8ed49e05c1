// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// call is one request being handled, under the lock.
type call struct {
	op     string
	r      *http.Request
	params map[string]string
	body   []byte
	in     *openapi3filter.RequestValidationInput
	repo   *repository
	token  *Token // nil: anonymous; handlers get an empty one instead
}

// reply is the result of a handler. Missing fields of the body are added from the
// description.
type reply struct {
	status int // 0 means 200
	body   any
	header http.Header
	listed bool   // list is the response, page by page
	list   []any  // all items
	key    string // the field for the page, next to total_count
	raw    []byte // the body as it is, for other media types
}

var notFound = errorReply(http.StatusNotFound, "Not Found")

// errorReply returns an error response in GitHub's format.
func errorReply(status int, message string) reply {
	return reply{status: status, body: obj{
		"message": message, "status": strconv.Itoa(status),
		"documentation_url": "https://docs.github.com/rest",
	}}
}

// invalidFieldReply returns GitHub's response for an invalid field.
func invalidFieldReply(resource, field, code, message string) reply {
	problem := obj{"resource": resource, "code": code, "field": field}
	if message != "" {
		problem["message"] = message
	}
	r := errorReply(http.StatusUnprocessableEntity, "Validation Failed")
	r.body.(obj)["errors"] = []any{problem}
	return r
}

// pathNumber reads a numeric path parameter; -1 if it is not a number.
func (c *call) pathNumber(name string) int64 {
	n, err := strconv.ParseInt(c.params[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func (s *Server) apiURL(r *repository, format string, a ...any) string {
	return s.URL + "/repos/" + r.Name + fmt.Sprintf(format, a...)
}

func (s *Server) pageURL(r *repository, format string, a ...any) string {
	return s.options.ServerURL + "/" + r.Name + fmt.Sprintf(format, a...)
}

// orNil returns null for a zero value.
func orNil[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
