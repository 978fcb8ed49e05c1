// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A peer is the other end of the protocol, played by a test. What Python and Node do there is
// tested in the end-to-end lane.
type peer struct {
	*Interpreter
	requests   *bufio.Reader
	out        io.Writer
	interrupts chan time.Time
	events     []Event
}

// newPeer starts an Interpreter in the test's bubble.
func newPeer(t *testing.T, o Options) *peer {
	t.Helper()
	inside, in := io.Pipe()
	out, outside := io.Pipe()
	p := &peer{requests: bufio.NewReaderSize(inside, MaxCode), out: outside, interrupts: make(chan time.Time, 10)}
	go fmt.Fprintln(outside, `{"kind":"hello","protocol":1,"language":"python"}`)
	o.Language, o.Interrupt = Python, func() error { p.interrupts <- time.Now(); return nil }
	i, err := Start(t.Context(), in, out, o)
	if err != nil {
		t.Fatal(err)
	}
	p.Interpreter = i
	t.Cleanup(func() { i.Close(); outside.Close(); inside.Close() })
	return p
}

// request reads the next request, and answers it with the lines, in which NONCE is replaced.
func (p *peer) request(t *testing.T, lines ...string) request {
	var r request
	line, err := p.requests.ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &r) != nil {
		t.Errorf("request %q, %v", line, err)
	}
	p.send(r, lines...)
	return r
}

func (p *peer) send(r request, lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(p.out, strings.ReplaceAll(line, "NONCE", r.Nonce))
	}
}

const (
	began = `{"kind":"began","nonce":"NONCE"}`
	done  = `{"kind":"done","nonce":"NONCE","ms":1}`
)

// execute is Execute, which keeps the events.
func (p *peer) execute(ctx context.Context, c Cell) (Outcome, error) {
	p.events = nil
	return p.Execute(ctx, c, func(e Event) { p.events = append(p.events, e) })
}

// An interrupt is sent while a cell runs. One that comes when no cell runs is not sent, and one
// that comes before the interpreter has begun the cell waits until then.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		if running, err := p.Interrupt(); running || err != nil || len(p.interrupts) > 0 {
			t.Errorf("idle: %v, %v, %d sent", running, err, len(p.interrupts))
		}
		for _, early := range []bool{false, true} {
			interrupt := func() {
				if running, err := p.Interrupt(); !running || err != nil {
					t.Errorf("%v, %v", running, err)
				}
			}
			go func() {
				r := p.request(t)
				if early {
					interrupt()
				}
				time.Sleep(time.Minute) // the interpreter is slow
				before := time.Now()
				if p.send(r, began); !early {
					time.Sleep(time.Second)
					interrupt()
				}
				if sent := <-p.interrupts; sent.Sub(before) < settling {
					t.Errorf("early %v: sent %s after the cell began", early, sent.Sub(before))
				}
				p.send(r, `{"kind":"error","nonce":"NONCE","name":"KeyboardInterrupt"}`, done)
			}()
			if o, err := p.execute(t.Context(), Cell{}); err != nil || o.Error == nil || o.Error.Name != "KeyboardInterrupt" {
				t.Errorf("early %v: %+v, %v", early, o, err)
			}
		}
	})
}

// When ctx ends, the cell is interrupted and the interpreter stays usable.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			r := p.request(t, began)
			<-p.interrupts
			p.send(r, done)
			p.request(t, began, done)
		}()
		if o, err := p.execute(ctx, Cell{}); !errors.Is(err, context.DeadlineExceeded) || code(err) != "" || o.Took != time.Second {
			t.Errorf("%+v, %v", o, err)
		}
		if _, err := p.execute(t.Context(), Cell{}); err != nil {
			t.Error(err)
		}
	})
}

// A cell that does not begin, or refuses to stop, makes the interpreter unusable after Grace.
func TestStuck(t *testing.T) {
	for _, begins := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t, Options{Grace: 3 * time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go func() {
				if r := p.request(t); begins {
					p.send(r, began)
				}
			}()
			if o, err := p.execute(ctx, Cell{}); code(err) != "interpreter.stuck" || o.Took != 4*time.Second {
				t.Errorf("%+v, %v", o, err)
			}
			if len(p.interrupts) > 0 != begins {
				t.Errorf("begins %v: %d interrupts", begins, len(p.interrupts))
			}
			if _, err := p.execute(t.Context(), Cell{}); code(err) != "interpreter.stuck" {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// Output that was written between two cells comes with the next one, and says so.
func TestLateOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		go p.request(t, `{"kind":"stdout","nonce":"NONCE","text":"after","late":true,"omitted":3}`, `{"kind":"stdout","nonce":"NONCE","text":"own"}`, done)
		_, err := p.execute(t.Context(), Cell{})
		want := []Event{{Kind: Stdout, Text: "after", Late: true, Omitted: 3}, {Kind: Stdout, Text: "own"}}
		if err != nil || fmt.Sprint(p.events) != fmt.Sprint(want) {
			t.Errorf("%+v, %v", p.events, err)
		}
	})
}

// Head and tail of long output are passed on, and the bytes between are counted. Results are
// bounded by number and by size.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{Limits: Limits{Head: 1 << 10, Tail: 1 << 9, Results: 3, ResultBytes: 1 << 10}})
		var lines []string
		want := 0
		for n := range 2000 {
			want += len(fmt.Sprintf("line %d\n", n))
			lines = append(lines, fmt.Sprintf(`{"kind":"stdout","nonce":"NONCE","text":"line %d\n"}`, n))
		}
		large := fmt.Sprintf(`{"kind":"display","nonce":"NONCE","data":{"text/plain":"%01100d"}}`, 1)
		small := `{"kind":"display","nonce":"NONCE","data":{"text/plain":"x"}}`
		go p.request(t, append(lines, large, small, small, small, small, done)...)
		o, err := p.execute(t.Context(), Cell{})
		text, omitted := "", 0
		for _, e := range p.events {
			text, omitted = text+e.Text, omitted+int(e.Omitted)
		}
		if err != nil || len(text) > 1<<10+1<<9 || len(text)+omitted != want || !strings.HasPrefix(text, "line 0\n") || !strings.HasSuffix(text, "line 1999\n") {
			t.Errorf("%d bytes and %d omitted of %d, %v: %.50q", len(text), omitted, want, err, text)
		}
		if o.Results != 3 || o.ResultsOmitted != 2 {
			t.Errorf("%+v", o)
		}
	})
}

// Invalid cells are refused, and the interpreter gets nothing of them.
func TestInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, Options{})
		for _, c := range []Cell{{Code: strings.Repeat("x", MaxCode+1)}, {Code: "a\nb\x00"}, {Code: "\xff"}} {
			if _, err := p.execute(t.Context(), c); code(err) != "interpreter.cell" || len(p.events) > 0 {
				t.Errorf("%.20q: %v", c.Code, err)
			}
		}
		for _, name := range []string{"", "a b", "ü", strings.Repeat("a", 65), "a\n"} {
			if ValidContext(name) {
				t.Errorf("a context with the name %q", name)
			}
		}
		longest := strings.Repeat(`"é\\`, MaxCode/5)
		go func() {
			if r := p.request(t, done); r.Code != longest {
				t.Errorf("the longest cell was not sent as it is: %d bytes", len(r.Code))
			}
		}()
		if _, err := p.execute(t.Context(), Cell{Code: longest}); err != nil {
			t.Error(err)
		}
	})
}
