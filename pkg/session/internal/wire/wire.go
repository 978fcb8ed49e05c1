// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package wire is what the servers of a session share: requests with bounds, and answers that
// are JSON documents or streams of events, one a line.
package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/fumehood/fumehood/pkg/internal/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of requests, in bytes.
const (
	MaxProposal = 1 << 20
	MaxFile     = 32 << 20
)

// An Event is one line of a stream. The last one of an answer to a proposal has Record or Error.
type Event struct {
	ID      string            `json:"id,omitempty"` // of the request, for Running.Cancel
	Note    string            `json:"note,omitempty"`
	Output  *proposal.Chunk   `json:"output,omitempty"`
	Record  *proposal.Record  `json:"record,omitempty"`
	Error   *proposal.Failure `json:"error,omitempty"`
	Started bool              `json:"started,omitempty"` // the command runs in the background
	Alive   bool              `json:"alive,omitempty"`   // the session is open
	Ended   bool              `json:"ended,omitempty"`   // nothing follows
}

// A Stream sends events, each as soon as it is there. Its methods are safe for concurrent use.
type Stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	ended bool
}

// NewStream returns a Stream that is the answer w.
func NewStream(w http.ResponseWriter) *Stream {
	w.Header().Set("Content-Type", "application/jsonl")
	return &Stream{w: w}
}

// Send sends e. A caller may ignore the error: a client that is gone ends its request.
func (s *Stream) Send(e Event) error {
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

// End makes further calls of Send do nothing. A handler calls it before it returns if others
// may still send.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// Answer sends v, or why there is none.
func Answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = Event{Error: proposal.FailureOf(err)}
	}
	_ = json.NewEncoder(w).Encode(v)
}

// Refusal returns the error for a request that is not what it must be.
func Refusal(message, hint string) error {
	return &proposal.StopError{Code: "session.request", Message: message, Hint: hint}
}

// Decode reads one JSON document of at most MaxProposal bytes without unknown or repeated fields.
func Decode(w http.ResponseWriter, r *http.Request, v any) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxProposal))
	if err == nil {
		err = strictjson.Decode(data, v)
	}
	if err != nil {
		return Refusal("cannot read the request: "+err.Error(), "send one JSON document of at most 1 MiB")
	}
	return nil
}

// ReadFile reads a file of at most MaxFile bytes.
func ReadFile(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxFile))
	if err != nil {
		return nil, Refusal("cannot read the file: "+err.Error(), fmt.Sprintf("send at most %d MiB", MaxFile>>20))
	}
	return data, nil
}
