// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of requests, in bytes.
const (
	maxProposal = 1 << 20
	maxFile     = 32 << 20
)

// An Info describes a session.
type Info struct {
	Name      string    `json:"name"`
	Session   string    `json:"session"` // the run's id in the report
	Log       string    `json:"log"`
	Workspace string    `json:"workspace"`
	PID       int       `json:"pid"`
	Started   time.Time `json:"started"`
	Proposals int       `json:"proposals"`
	Running   int       `json:"running"` // commands that run or wait
	// Killed means that the session's process ended without sealing the log.
	Killed bool `json:"killed,omitempty"`
}

// An Ended describes a session that has ended.
type Ended struct {
	Name   string            `json:"name"`
	Totals proposal.Totals   `json:"totals"`
	Log    string            `json:"log"`
	Key    string            `json:"key"` // that verifies the log
	Error  *proposal.Failure `json:"error,omitempty"`
}

// An event is one line of the answer to a proposal. The last has Record or Error.
type event struct {
	ID     string            `json:"id,omitempty"`
	Note   string            `json:"note,omitempty"`
	Output *proposal.Chunk   `json:"output,omitempty"`
	Record *proposal.Record  `json:"record,omitempty"`
	Error  *proposal.Failure `json:"error,omitempty"`
}

// A stream sends events, each as soon as it is there.
type stream struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

// send ignores errors: a client that is gone ends its request.
func (s *stream) send(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(s.w).Encode(e)
	_ = http.NewResponseController(s.w).Flush()
}

// answer sends v, or why there is none.
func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = event{Error: proposal.FailureOf(err)}
	}
	_ = json.NewEncoder(w).Encode(v)
}

// decode reads one JSON document of at most maxProposal bytes.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxProposal))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	if err != nil {
		return stop("session.request", "cannot read the request: "+err.Error(), "send one JSON document of at most 1 MiB")
	}
	return nil
}
