// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A code is Connect's name of a kind of error. The SDK makes its error types of them, and of
// the HTTP status.
type code string

const (
	invalidArgument   code = "invalid_argument"
	unauthenticated   code = "unauthenticated"
	permissionDenied  code = "permission_denied"
	notFound          code = "not_found"
	alreadyExists     code = "already_exists"
	resourceExhausted code = "resource_exhausted"
	noSpace           code = "aborted" // over HTTP, a status of its own
	unimplemented     code = "unimplemented"
	unavailable       code = "unavailable" // the sandbox has ended
	busy              code = "busy"        // of the API only
	canceled          code = "canceled"
	internal          code = "internal"
)

// statuses are the HTTP statuses by which the SDK tells errors apart. 502 is what E2B's
// proxy answers for a sandbox that has ended.
var statuses = map[code]int{
	invalidArgument: 400, unauthenticated: 401, permissionDenied: 403, notFound: 404, alreadyExists: 409,
	resourceExhausted: 429,
	noSpace:           507, unimplemented: 501, unavailable: 502, busy: 503, canceled: 499, internal: 500,
}

// A refusal is an error for the client.
type refusal struct {
	code    code
	message string
	plain   bool // the SDK's users compare the message
}

func (r *refusal) Error() string { return string(r.code) + ": " + r.message }

func refuseRequest(c code, format string, args ...any) error {
	return &refusal{code: c, message: fmt.Sprintf(format, args...)}
}

const maxMessage = 2000 // displayed units

// refusalOf returns err for the client.
func refusalOf(err error) *refusal {
	var r *refusal
	var stop *proposal.StopError
	switch {
	case errors.As(err, &r):
	case errors.As(err, &stop):
		f := proposal.FailureOf(err)
		r = &refusal{code: internal, message: f.Code + ": " + f.Message}
		if f.Hint != "" {
			r.message += "; hint: " + f.Hint
		}
		switch f.Code {
		case "session.proposal", "session.request":
			r.code = invalidArgument
		case "sandbox.save", "sandbox.restore": // of a snapshot, which is not as the request wants it
			r.code = alreadyExists
		case "session.input":
			r.code = unimplemented
		case "session.full", "session.background", "session.requests":
			r.code = resourceExhausted
		case "session.closed", "session.idle":
			r.code = unavailable
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		r = &refusal{code: canceled, message: "the request was cancelled"}
	default:
		r = &refusal{code: internal, message: err.Error()}
	}
	if r.plain {
		return r
	}
	return &refusal{code: r.code, message: text.Inline("fumehood: "+r.message, maxMessage)}
}

// A failure answers a request with an error, in one of the forms that the SDK reads.
type failure func(w http.ResponseWriter, err error)

// failJSON is the form of the API and of the daemon's plain requests.
func failJSON(w http.ResponseWriter, err error) {
	r := refusalOf(err)
	sendAnswer(w, statuses[r.code], map[string]any{"code": statuses[r.code], "message": r.message})
}

// failConnect is the form of Connect's unary calls.
func failConnect(w http.ResponseWriter, err error) {
	r := refusalOf(err)
	sendAnswer(w, statuses[r.code], map[string]any{"code": r.code, "message": r.message})
}

// failText is the form of the code interpreter. Of its errors the SDK shows the text for two
// statuses only: for the end of the sandbox, and 404 for all others.
func failText(w http.ResponseWriter, err error) {
	r := refusalOf(err)
	status := http.StatusNotFound
	if r.code == unavailable {
		status = statuses[unavailable]
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, r.message)
}

func sendAnswer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if body == nil {
		w.WriteHeader(status)
		return
	}
	data, err := json.Marshal(body)
	if err != nil {
		status, data = statuses[internal], []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_ = writeWithDeadline(w, data) // the client has gone
}
