// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A Kind is a way to misbehave.
type Kind int

// The zero Kind does nothing. Inject panics on it, so that a forgotten Kind is noticed.
const (
	_                 Kind = iota
	Answer                 // respond with Status (default 500) instead of doing the work
	AnswerAfter            // respond with Status (default 502) though the work is done
	ResetBefore            // reset the connection; nothing is done
	ResetAfter             // do the work, then reset the connection
	Slow                   // send the second half of the body Delay later
	Truncate               // send half of the body, declared as complete
	Cut                    // send half of the body, then reset the connection
	DuplicatePage          // repeat the previous page, as if a full page had been inserted before it
	LinkLoop               // rel="next" leads back to the same page
	LinkAway               // rel="next" leads to another host
	PrimaryLimit           // Status 403 or 429 (default 403), no requests left until Delay has passed
	SecondaryLimit         // Status 403 or 429 (default 403), Retry-After Delay; 0: without that header
	NotFoundForAWhile      // 404, as from a replica that lags behind
	Redirect               // Status (default 302) to Body
)

const exhausted = "API rate limit exceeded for installation. If you reach out to GitHub Support for help, please include the request ID."

// A Fault is one misbehavior, on demand.
type Fault struct {
	Op     string                   // operationId, "blob" for the blob store, "" for all
	Match  func(*http.Request) bool // narrows Op; nil: every request
	Kind   Kind
	Skip   int // number of matching requests that are served normally first
	Count  int // number of requests hit; 0: one, -1: all from then on
	Status int
	Delay  time.Duration
	Body   string // for Answer (default: GitHub's own shape); Redirect's address
}

// InjectFault adds a fault. If several match, the one added first that still has
// requests to hit is used.
func (s *Server) InjectFault(f Fault) {
	if f.Kind <= 0 || f.Kind > Redirect {
		panic("githubtest: a Fault without a Kind")
	}
	if f.Count == 0 {
		f.Count = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// PendingFaults returns the number of faults that have not hit all their requests. A
// fault for all requests is always pending.
func (s *Server) PendingFaults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

// RemoveFaults removes all faults.
func (s *Server) RemoveFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// faultFor returns the fault for a request and counts the hit.
func (s *Server) faultFor(op string, r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.Op != "" && f.Op != op || f.Match != nil && !f.Match(r) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Count > 0 {
			f.Count--
		}
		if f.Count == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f
	}
	return nil
}

func (f *Fault) statusOr(otherwise int) int {
	if f.Status == 0 {
		return otherwise
	}
	return f.Status
}

// replaceAnswer returns the response sent instead of doing the work; nil if the work is
// to be done.
func (f *Fault) replaceAnswer(s *Server) *answer {
	var a answer
	switch now := s.options.Now(); f.Kind {
	case Answer:
		a = f.errorAnswer(f.statusOr(http.StatusInternalServerError), "Server Error")
	case NotFoundForAWhile:
		a = f.errorAnswer(http.StatusNotFound, "Not Found")
	case Redirect:
		a = f.errorAnswer(f.statusOr(http.StatusFound), "Moved")
		a.header.Set("Location", f.Body)
	case PrimaryLimit:
		a = f.errorAnswer(f.statusOr(http.StatusForbidden), exhausted)
		limitHeaders(a.header, s.options.Quota, s.options.Quota, now.Add(f.Delay))
	case SecondaryLimit:
		a = f.errorAnswer(f.statusOr(http.StatusForbidden),
			"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		if f.Delay > 0 {
			a.header.Set("Retry-After", strconv.Itoa(int(f.Delay.Seconds())))
		}
		limitHeaders(a.header, s.options.Quota, 1, now.Add(time.Hour))
	default:
		return nil
	}
	return &a
}

func (f *Fault) errorAnswer(status int, message string) answer {
	no := errorReply(status, message)
	body := no.body.(obj)
	if f.Kind == SecondaryLimit {
		body["documentation_url"] = "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
	}
	a := answer{status: status, header: http.Header{"Content-Type": {jsonType}}, body: encodeJSON(body)}
	if f.Body != "" && f.Kind == Answer {
		a.body = []byte(f.Body)
	}
	return a
}

// resetConnection sends a RST instead of closing the connection normally.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}
