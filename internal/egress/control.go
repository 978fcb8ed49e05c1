// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A control is the gateway's end of the control socket.
type control struct {
	conn net.Conn
	asks chan struct{} // one for each unanswered question

	sending sync.Mutex // keeps the numbers in order
	seq     uint64

	mu      sync.Mutex
	waiting map[uint64]chan proposal.EgressDecision
}

func newControl(conn net.Conn) *control {
	return &control{conn: conn, asks: make(chan struct{}, wire.MaxAsks),
		waiting: map[uint64]chan proposal.EgressDecision{}}
}

// send sends a message that is not an answer.
func (c *control) send(kind wire.Kind, body wire.Body) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.sayLocked(kind, body)
}

func (c *control) sayLocked(kind wire.Kind, body wire.Body) error {
	message, err := wire.Encode(kind, c.seq+1, body)
	if err != nil {
		return err
	}
	c.seq++
	_, err = c.conn.Write(message)
	return err
}

// sendAnswer sends a Done or a Pong.
func (c *control) sendAnswer(kind wire.Kind, seq uint64, body wire.Body) error {
	message, err := wire.Encode(kind, seq, body)
	if err != nil {
		return err
	}
	_, err = c.conn.Write(message)
	return err
}

// askSupervisor returns policy's decision about e. On any error the decision is a denial.
func (c *control) askSupervisor(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
	select {
	case c.asks <- struct{}{}: // released with the answer, even if the caller has stopped waiting
	case <-ctx.Done():
		return proposal.EgressDecision{}, ctx.Err()
	}
	answer := make(chan proposal.EgressDecision, 1)
	if err := c.sayAsk(e, answer); err != nil {
		<-c.asks
		return proposal.EgressDecision{}, err
	}
	select {
	case d := <-answer:
		return d, nil
	case <-ctx.Done():
		return proposal.EgressDecision{}, ctx.Err()
	}
}

func (c *control) sayAsk(e proposal.Egress, answer chan proposal.EgressDecision) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	seq := c.seq + 1
	c.waiting[seq] = answer
	c.mu.Unlock()
	err := c.sayLocked(wire.KindAsk, &wire.Ask{Egress: e})
	if err != nil {
		c.mu.Lock()
		delete(c.waiting, seq)
		c.mu.Unlock()
	}
	return err
}

// reportFlow reports f. If that fails, the supervisor is gone and serve ends.
func (c *control) reportFlow(f proposal.Flow) {
	_ = c.send(wire.KindFlow, &wire.Flow{Time: time.Now().UnixNano(), Flow: f})
}

// serve reads until the supervisor is gone or order returns an error. For each Begin
// and End it calls order in a new goroutine and answers when order returns.
func (c *control) serve(order func(kind wire.Kind) (wire.Done, error)) error {
	broken := make(chan error, 2)
	go func() {
		buf := make([]byte, wire.MaxMessage+1)
		for {
			if err := c.handleNextMessage(buf, order, broken); err != nil {
				broken <- err
				return
			}
		}
	}()
	err := <-broken
	_ = c.send(wire.KindFault, &wire.Fault{Text: err.Error()})
	return err
}

func (c *control) handleNextMessage(buf []byte, order func(wire.Kind) (wire.Done, error), broken chan<- error) error {
	n, err := c.conn.Read(buf)
	if err != nil || n == 0 {
		return errors.New("the supervisor is gone")
	}
	h, body, err := wire.Open(buf[:n])
	if err != nil {
		return err
	}
	switch h.Kind {
	case wire.KindPing:
		return c.sendAnswer(wire.KindPong, h.Seq, nil)
	case wire.KindAnswer:
		return c.handleAnswer(h.Seq, body)
	case wire.KindBegin, wire.KindEnd:
		go func() {
			done, err := order(h.Kind)
			if err == nil {
				err = c.sendAnswer(wire.KindDone, h.Seq, &done)
			}
			if err != nil {
				select {
				case broken <- err:
				default:
				}
			}
		}()
		return nil
	}
	return fmt.Errorf("message of kind %d", h.Kind)
}

func (c *control) handleAnswer(seq uint64, body []byte) error {
	var a wire.Answer
	if err := wire.Decode(body, &a); err != nil {
		return err
	}
	c.mu.Lock()
	waiting, ok := c.waiting[seq]
	delete(c.waiting, seq)
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("an answer to %d, which was not asked", seq)
	}
	<-c.asks
	waiting <- a.Decision
	return nil
}
