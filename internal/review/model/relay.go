// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxRelayed is the maximum size in bytes of one line between a Relay and Serve.
const maxRelayed = 64 << 20

// MaxServed is how many requests Serve sends at most.
const MaxServed = 200

// A Relay is a Provider that has no key: it writes each request as a line of JSON to a process
// that has one and runs Serve, and reads the answers.
type Relay struct {
	out io.Writer

	mu      sync.Mutex
	n       int
	waiting map[int]chan relayed
}

// The lines. N is the number of a request, and of its answer.
type (
	relayQuestion struct {
		N       int     `json:"n"`
		Request Request `json:"request"`
	}
	relayed struct {
		N      int    `json:"n"`
		Answer Answer `json:"answer"`
		Error  *Error `json:"error,omitempty"`
	}
)

// NewRelay returns a Relay that writes to out and reads in until its end. ended is called then:
// the process that has the key is gone.
func NewRelay(in io.Reader, out io.Writer, ended func()) *Relay {
	r := &Relay{out: out, waiting: map[int]chan relayed{}}
	go func() {
		defer ended()
		lines := newLineScanner(in)
		for lines.Scan() {
			var a relayed
			if json.Unmarshal(lines.Bytes(), &a) == nil {
				r.deliverAnswer(a)
			}
		}
		_, _ = io.Copy(io.Discard, in) // after a line that is too long
	}()
	return r
}

func newLineScanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxRelayed)
	return s
}

// deliverAnswer gives an answer to the request that waits for it. One that comes too late is lost.
func (r *Relay) deliverAnswer(a relayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.waiting[a.N]; c != nil {
		delete(r.waiting, a.N)
		c <- a
	}
}

// Ask implements Provider.
func (r *Relay) Ask(ctx context.Context, q Request) (Answer, error) {
	n, answered, err := r.sendQuestion(q)
	if err != nil {
		return Answer{}, &Error{Message: "cannot reach the process that asks the model: " + innermostCause(err)}
	}
	select {
	case <-ctx.Done():
		r.mu.Lock()
		delete(r.waiting, n)
		r.mu.Unlock()
		return Answer{}, ctx.Err()
	case a := <-answered:
		if a.Error != nil {
			return Answer{}, a.Error
		}
		return a.Answer, nil
	}
}

func (r *Relay) sendQuestion(q Request) (int, chan relayed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	line, err := json.Marshal(relayQuestion{r.n, q})
	if err == nil && len(line) >= maxRelayed {
		err = fmt.Errorf("the request is larger than %d bytes", maxRelayed)
	}
	if err != nil {
		return 0, nil, err
	}
	answered := make(chan relayed, 1)
	r.waiting[r.n] = answered
	_, err = r.out.Write(append(line, '\n'))
	return r.n, answered, err
}

// Serve answers the requests of a Relay by asking p, one after the other, until in ends or ctx
// does. Each text of an answer passes through clean, and so does that of an error. The model must
// be name, and at most MaxServed requests are sent.
func Serve(ctx context.Context, in io.Reader, out io.Writer, p Provider, name string, clean func(string) string) {
	// A process that writes must never wait for a reader.
	defer func() { _, _ = io.Copy(io.Discard, in) }()
	lines := newLineScanner(in)
	for n := 0; lines.Scan() && ctx.Err() == nil; n++ {
		var q relayQuestion
		if json.Unmarshal(lines.Bytes(), &q) != nil || q.Request.Model != name || n >= MaxServed {
			return
		}
		line, err := json.Marshal(answerQuestion(ctx, p, q, clean))
		if err != nil {
			return
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return
		}
	}
}

func answerQuestion(ctx context.Context, p Provider, q relayQuestion, clean func(string) string) relayed {
	a, err := p.Ask(ctx, q.Request)
	a.Text = clean(a.Text)
	r := relayed{N: q.N, Answer: a}
	if err != nil && !errors.As(err, &r.Error) {
		r.Error = &Error{Message: "the request was cancelled", Spent: true}
	}
	if r.Error != nil {
		e := *r.Error
		e.Message, e.After = clean(e.Message), min(e.After, 24*time.Hour)
		r = relayed{N: q.N, Error: &e}
	}
	return r
}
