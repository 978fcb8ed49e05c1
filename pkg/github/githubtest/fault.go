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

// The zero Kind does nothing, so that a forgotten one shows: Inject panics.
const (
	_                 Kind = iota
	Answer                 // Status (default 500) instead of the work
	AnswerAfter            // Status (default 502) though the work was done
	ResetBefore            // the connection dies and nothing was done
	ResetAfter             // the work is done, then the connection dies
	Slow                   // the second half of the body comes Delay later
	Truncate               // half of the body, said to be all of it
	Cut                    // half of the body, then the connection dies
	DuplicatePage          // a full page was inserted ahead: the page before comes again
	LinkLoop               // rel="next" leads back to the same page
	LinkAway               // rel="next" leads to another host
	PrimaryLimit           // Status 403 or 429 (default 403), no request left until Delay has passed
	SecondaryLimit         // Status 403 or 429 (default 403), Retry-After Delay; 0: no such header
	NotFoundForAWhile      // 404, as a replica does that lags behind
	Redirect               // Status (default 302) to Body
)

const exhausted = "API rate limit exceeded for installation. If you reach out to GitHub Support for help, please include the request ID."

// A Fault is one misbehaviour, on demand.
type Fault struct {
	Op     string                   // operationId, "blob" for the blob store, "" for every one
	Match  func(*http.Request) bool // narrows Op; nil: every request
	Kind   Kind
	Skip   int // that many requests come through first
	Count  int // that many are hit; 0: one, -1: all from then on
	Status int
	Delay  time.Duration
	Body   string // of Answer, default GitHub's own shape; Redirect's address
}

// Inject adds a fault. Of several that match, the first added one that still has
// requests to hit is used up first.
func (s *Server) Inject(f Fault) {
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

// Pending returns how many faults wait for requests that have not come. A fault for
// all requests is always pending.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

// Heal forgets all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// faultFor uses up one hit.
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

func (f *Fault) status(otherwise int) int {
	if f.Status == 0 {
		return otherwise
	}
	return f.Status
}

// instead is what is answered in place of the work; nil when the work is to be done.
func (f *Fault) instead(s *Server) *answer {
	var a answer
	switch now := s.options.Now(); f.Kind {
	case Answer:
		a = f.answer(f.status(http.StatusInternalServerError), "Server Error")
	case NotFoundForAWhile:
		a = f.answer(http.StatusNotFound, "Not Found")
	case Redirect:
		a = f.answer(f.status(http.StatusFound), "Moved")
		a.header.Set("Location", f.Body)
	case PrimaryLimit:
		a = f.answer(f.status(http.StatusForbidden), exhausted)
		limitHeaders(a.header, s.options.Quota, s.options.Quota, now.Add(f.Delay))
	case SecondaryLimit:
		a = f.answer(f.status(http.StatusForbidden), "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		if f.Delay > 0 {
			a.header.Set("Retry-After", strconv.Itoa(int(f.Delay.Seconds())))
		}
		limitHeaders(a.header, s.options.Quota, 1, now.Add(time.Hour))
	default:
		return nil
	}
	return &a
}

func (f *Fault) answer(status int, message string) answer {
	no := refuse(status, message)
	body := no.body.(obj)
	if f.Kind == SecondaryLimit {
		body["documentation_url"] = "https://docs.github.com/free-pro-team@latest/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
	}
	a := answer{status: status, header: http.Header{"Content-Type": {jsonType}}, body: encode(body)}
	if f.Body != "" && f.Kind == Answer {
		a.body = []byte(f.Body)
	}
	return a
}

// reset sends RST rather than a polite end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}
