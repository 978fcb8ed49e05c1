// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"fmt"
	"net/http"
	"time"
)

// A Request is one line of a Server's log.
type Request struct {
	Op     string // operationId; "blob" for the blob store, "" for an unknown path
	Method string
	Path   string // without the prefix, with "/repos/owner/name"
	Query  string
	Token  string // as received, valid or not; empty for none
	Login  string // of the token
	Body   []byte
	Header http.Header
	Time   time.Time
	Status int // 0: no response
}

// A Violation is a request that GitHub would refuse or partly ignore, or a response
// of this fake that GitHub would not give.
type Violation struct {
	Where   string // "route", "request", "response"
	Op      string
	Message string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s of %s: %s", v.Where, v.Op, v.Message)
}

// Requests returns a copy of the log, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.log))
	for i, r := range s.log {
		list[i] = *r
	}
	return list
}

// RequestsFor returns the Requests for one operation.
func (s *Server) RequestsFor(op string) []Request {
	var list []Request
	for _, r := range s.Requests() {
		if r.Op == op {
			list = append(list, r)
		}
	}
	return list
}

// Violations returns the violations so far.
func (s *Server) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Violation(nil), s.violations...)
}

// TakeViolations returns the violations so far and clears them: for tests that
// violate rules on purpose.
func (s *Server) TakeViolations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.violations
	s.violations = nil
	return list
}

func (s *Server) addViolation(where, op, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, Violation{where, op, message})
}

// recordRequest adds r to the log; answered is called with the status once it is known.
func (s *Server) recordRequest(r *http.Request, op, path string, body []byte) (answered func(int)) {
	entry := &Request{Op: op, Method: r.Method, Path: path, Query: r.URL.RawQuery, Token: requestToken(r),
		Body: body, Header: r.Header.Clone(), Time: s.options.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if token, ok := s.tokens[entry.Token]; ok {
		entry.Login = token.Login
	}
	s.log = append(s.log, entry)
	return func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		entry.Status = status
	}
}
