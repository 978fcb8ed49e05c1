// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fumehood/fumehood/internal/egress/wire"
)

// readMessages reads and handles messages until the gateway has failed.
func (g *Gateway) readMessages() {
	defer close(g.done)
	buf := make([]byte, wire.MaxMessage+1)
	for g.handleNextMessage(buf) {
	}
	<-g.process.Done()
}

// handleNextMessage measures the silence from the moment it starts to wait, so that time spent
// handling a message here does not count against the process.
func (g *Gateway) handleNextMessage(buf []byte) bool {
	patience := g.o.Patience
	if !g.heard {
		patience = startGrace
	}
	_ = g.conn.SetReadDeadline(time.Now().Add(patience))
	n, err := g.conn.Read(buf)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		g.fail("gateway.slow", "the gateway's process does not answer", nil)
	case err != nil || n == 0:
		g.failProcessGone(err)
	default:
		if err := g.handleMessage(buf[:n]); err != nil {
			g.fail("gateway.protocol", "the gateway's process violates the protocol", err)
		}
	}
	return g.Err() == nil
}

// failProcessGone fails with the way the process ended, if that is why nothing can be read.
func (g *Gateway) failProcessGone(err error) {
	if g.Err() != nil {
		return
	}
	if how := g.processError(); how != nil {
		err = how
	}
	g.fail("gateway.gone", "the gateway's process ended", err)
}

func (g *Gateway) handleMessage(message []byte) error {
	h, body, err := wire.Open(message)
	if err != nil {
		return err
	}
	if (h.Kind == wire.KindHello) == g.heard && h.Kind != wire.KindFault {
		return errors.New("the first message, and only it, must be a greeting")
	}
	switch h.Kind {
	case wire.KindDone:
		return g.handleDone(h.Seq, body)
	case wire.KindPong:
		if len(body) > 0 {
			return errors.New("a pong with a body")
		}
		return nil
	}
	if g.sequence++; h.Seq != g.sequence {
		return fmt.Errorf("message %d instead of %d", h.Seq, g.sequence)
	}
	switch h.Kind {
	case wire.KindHello:
		return g.handleHello(body)
	case wire.KindAsk:
		return g.handleAsk(h.Seq, body)
	case wire.KindFlow:
		return g.handleFlow(body)
	case wire.KindFault:
		return g.handleFault(body)
	}
	return fmt.Errorf("message of kind %d", h.Kind)
}

func (g *Gateway) handleHello(body []byte) error {
	var hello wire.Hello
	if err := wire.Decode(body, &hello); err != nil {
		return err
	}
	g.heard = true
	g.hello <- hello.CA
	return nil
}

func (g *Gateway) handleFault(body []byte) error {
	var fault wire.Fault
	if err := wire.Decode(body, &fault); err != nil {
		return err
	}
	g.fail("gateway.gone", "the gateway's process stopped itself", errors.New(fault.Text))
	return nil
}

// sendOrder sends a Begin or an End and waits until it is done.
func (g *Gateway) sendOrder(ctx context.Context, kind wire.Kind, body wire.Body) error {
	g.mu.Lock()
	g.orders++
	seq, waiting := g.orders, make(chan wire.Done, 1)
	g.waiting[seq] = waiting
	g.mu.Unlock()
	if err := g.sendMessage(kind, seq, body); err != nil {
		return err
	}
	timeout := time.NewTimer(2 * g.o.Patience)
	defer timeout.Stop()
	select {
	case <-waiting:
		return nil
	case <-g.failed:
		return g.err
	case <-ctx.Done():
		return g.fail("gateway.gone", "the run was interrupted", ctx.Err())
	case <-timeout.C:
		return g.fail("gateway.slow", "the gateway's process did not answer an order in time", nil)
	}
}

func (g *Gateway) handleDone(seq uint64, body []byte) error {
	var done wire.Done
	if err := wire.Decode(body, &done); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, ok := g.waiting[seq]
	if !ok {
		return fmt.Errorf("order %d was not given", seq)
	}
	delete(g.waiting, seq)
	waiting <- done
	return nil
}

// sendPings sends several Pings in the time that the process may be silent.
func (g *Gateway) sendPings() {
	ticker := time.NewTicker(g.o.Patience / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = g.sendMessage(wire.KindPing, 0, nil)
		case <-g.failed:
			return
		}
	}
}

// sendMessage sends one message. A process that does not read counts as silent.
func (g *Gateway) sendMessage(kind wire.Kind, seq uint64, body wire.Body) error {
	message, err := wire.Encode(kind, seq, body)
	if err != nil {
		return g.fail("gateway.protocol", "cannot send a message to the gateway's process", err)
	}
	_ = g.conn.SetWriteDeadline(time.Now().Add(g.o.Patience))
	_, err = g.conn.Write(message)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return g.fail("gateway.slow", "the gateway's process does not read its messages", nil)
	}
	g.failProcessGone(err)
	return g.err
}
