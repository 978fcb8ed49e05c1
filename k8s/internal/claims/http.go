// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/fumehood/fumehood/internal/agents/claims"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxRequest is the maximum size of a request in bytes.
const maxRequest = 64 << 10

// Serve answers clients of package claims of the main module at a unix socket, which only processes
// of this user can use, until ctx ends.
func (s *Service) Serve(ctx context.Context, socket string) error {
	_ = os.Remove(socket) // of a process before this one
	l, err := net.Listen("unix", socket)
	if err != nil {
		return stop("claims.socket", "cannot listen at "+socket, "use a directory of this user", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxRequest}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(claims.SameUser(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /holders/{holder}", s.hold)
	mux.HandleFunc("PUT /holders/{holder}/claims/{request}", s.claimed)
	mux.HandleFunc("DELETE /holders/{holder}/claims/{request}", func(w http.ResponseWriter, r *http.Request) {
		released(w, r, s.Withdraw(r.PathValue("holder"), r.PathValue("request")))
	})
	mux.HandleFunc("DELETE /claims/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		released(w, r, s.Release(r.PathValue("namespace"), r.PathValue("name")))
	})
	return mux
}

// released answers when there is no claim any more. Until then, a restart forgets the request, and the
// client must not take it for done.
func released(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
	select {
	case <-done:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done(): // the client has gone, or this process ends
		panic(http.ErrAbortHandler)
	}
}

// hold answers until the holder goes away.
func (s *Service) hold(w http.ResponseWriter, r *http.Request) {
	if !label.MatchString(r.PathValue("holder")) {
		answer(w, nil, stop("claims.request", "the holder's name is invalid", "use another", nil))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	context.AfterFunc(s.ctx, cancel)
	held := make(chan struct{})
	go func() { defer close(held); s.Hold(ctx, r.PathValue("holder")) }()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-held
}

func (s *Service) claimed(w http.ResponseWriter, r *http.Request) {
	var in claims.Request
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		answer(w, nil, stop("claims.request", "cannot read the request", "use the same version of fumehood", err))
		return
	}
	if !label.MatchString(r.PathValue("request")) {
		answer(w, nil, stop("claims.request", "the request's ID is invalid", "use another", nil))
		return
	}
	out, err := s.Claim(r.Context(), r.PathValue("holder"), r.PathValue("request"), in)
	answer(w, out, err)
	if lost := errors.Join(http.NewResponseController(w).Flush(), r.Context().Err()); lost != nil && err == nil {
		s.Release(out.Namespace, out.Name) // the client does not know of it
	}
}

func answer(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusUnprocessableEntity)
		v = proposal.FailureOf(err)
	}
	_ = json.NewEncoder(w).Encode(v)
}
