// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// answer is the HTTP response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// writeDelayed sends a with the delays of fault.
func (a answer) writeDelayed(ctx context.Context, w http.ResponseWriter, fault *Fault) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	half := len(a.body) / 2
	if fault != nil && fault.Kind == Truncate {
		a.body = a.body[:half]
	}
	if a.status != http.StatusNotModified && a.status != http.StatusNoContent {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
	if fault != nil && (fault.Kind == Slow || fault.Kind == Cut) {
		w.Write(a.body[:half])
		http.NewResponseController(w).Flush()
		if fault.Kind == Cut {
			panic(http.ErrAbortHandler)
		}
		select {
		case <-ctx.Done(): // the client gave up
			return
		case <-time.After(fault.Delay):
		}
		a.body = a.body[half:]
	}
	w.Write(a.body)
}

func plainAnswer(r reply) answer {
	a := answer{status: r.status, header: http.Header{}, body: r.raw}
	for name, values := range r.header {
		a.header[name] = values
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if r.body != nil && r.raw == nil {
		a.body = encodeJSON(r.body)
	}
	if len(a.body) > 0 && a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", jsonType)
	}
	a.header.Set("X-Github-Request-Id", "0000:0000:0000:0000:0000")
	return a
}
