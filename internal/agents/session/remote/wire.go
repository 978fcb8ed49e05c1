// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of requests, in bytes.
const (
	MaxDocument = 1 << 20
	MaxFile     = 32 << 20
)

// An event is one line of a stream. The last one of an answer to a proposal has Record or Error.
type event struct {
	ID      string            `json:"id,omitempty"` // of the request
	Output  *proposal.Chunk   `json:"output,omitempty"`
	Record  *proposal.Record  `json:"record,omitempty"`
	Error   *proposal.Failure `json:"error,omitempty"`
	Started bool              `json:"started,omitempty"` // the command runs in the background
	Alive   bool              `json:"alive,omitempty"`   // the session is open
	Ended   bool              `json:"ended,omitempty"`   // nothing follows
}

// A stream sends events, each as soon as it is there. Its methods are safe for concurrent use.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	ended bool
}

// newStream returns a stream that is the answer w.
func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "application/jsonl")
	return &stream{w: w}
}

// sendEvent sends e. A caller may ignore the error: a client that is gone ends its request.
func (s *stream) sendEvent(e event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return http.ErrHandlerTimeout
	}
	if err := json.NewEncoder(s.w).Encode(e); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// endStream makes further calls of send do nothing. A handler calls it before it returns if others
// may still send.
func (s *stream) endStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// sendAnswer sends v, or why there is none.
func sendAnswer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = event{Error: proposal.FailureOf(err)}
	}
	_ = json.NewEncoder(w).Encode(v)
}

// A partHeader is the line before Size bytes of data.
type partHeader struct {
	Output *proposal.Output  `json:"output,omitempty"`
	Report *proposal.Report  `json:"report,omitempty"`
	Error  *proposal.Failure `json:"error,omitempty"` // why the session stopped early
	Size   int64             `json:"size"`
}

func (p partHeader) sendPart(w http.ResponseWriter, data io.Reader) error {
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := json.NewEncoder(w).Encode(p); err != nil {
		return err
	}
	_, err := io.CopyN(w, data, p.Size)
	return err
}

// refuseRequest returns the error for a request that is not what it must be.
func refuseRequest(message, hint string) error {
	return &proposal.StopError{Code: "session.request", Message: message, Hint: hint}
}

// readDocument reads the one JSON document of a request, of at most MaxDocument bytes without unknown or
// repeated fields.
func readDocument[T any](w http.ResponseWriter, r *http.Request) (v T, err error) {
	data, err := readBody(w, r, MaxDocument)
	if err == nil {
		err = strictjson.Decode(data, &v)
	}
	if err != nil {
		return v, refuseRequest("cannot read the request: "+err.Error(), "send one JSON document of at most 1 MiB")
	}
	return v, nil
}

// readFile reads a file of at most MaxFile bytes.
func readFile(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := readBody(w, r, MaxFile)
	if err != nil {
		return nil, refuseRequest("cannot read the file: "+err.Error(), fmt.Sprintf("send at most %d MiB", MaxFile>>20))
	}
	return data, nil
}
