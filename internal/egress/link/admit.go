// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const second = time.Second

// patience is how long the sandbox may take to complete a handshake.
const patience = 10 * second

// linger is how long the sandbox has, after the close, to receive what was written
// before it.
const linger = time.Minute

// admitConnection decides about one connection and handles it until its end. The stack calls it
// in a new goroutine.
func (l *Link) admitConnection(r *tcp.ForwarderRequest) {
	ctx, done := l.joinEpoch()
	defer done()
	select {
	case l.open <- struct{}{}:
		defer func() { <-l.open }()
	default:
		l.counts.busy.Add(1)
		r.Complete(true)
		return
	}
	if ctx.Err() != nil {
		r.Complete(true)
		return
	}
	l.counts.connections.Add(1)
	id := r.ID()
	from, to := addrPort(id.RemoteAddress, id.RemotePort), addrPort(id.LocalAddress, id.LocalPort)
	session := l.askHandler(ctx, from, to)
	if session == nil {
		r.Complete(true)
		return
	}
	var queue waiter.Queue
	endpoint := l.completeHandshake(ctx, r, &queue)
	if endpoint == nil {
		session.Abandon()
		return
	}
	l.serveConnection(ctx, &conn{TCPConn: gonet.NewTCPConn(&queue, endpoint), endpoint: endpoint}, session)
}

// askHandler returns the Session that serves the connection, or nil.
func (l *Link) askHandler(ctx context.Context, from, to netip.AddrPort) Session {
	if isDNSAddress(l.config.Segment, to) {
		return tcpQueries{l}
	}
	return l.handler.Admit(ctx, from, to)
}

// completeHandshake completes the handshake with the sandbox. It returns nil if the sandbox
// does not answer in time.
func (l *Link) completeHandshake(ctx context.Context, r *tcp.ForwarderRequest, queue *waiter.Queue) tcpip.Endpoint {
	id := r.ID()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answered := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { l.abortHandshake(id, answered) })
	endpoint, err := r.CreateEndpoint(queue)
	close(answered)
	late := !stop()
	r.Complete(err != nil)
	switch {
	case err != nil:
		return nil
	case late:
		endpoint.Abort()
		return nil
	}
	return endpoint
}

// abortHandshake ends a handshake in progress. The stack has no other way to interrupt one, so
// abort looks for the endpoint until it exists or answered is closed.
func (l *Link) abortHandshake(id stack.TransportEndpointID, answered <-chan struct{}) {
	number := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
	if id.LocalAddress.Len() == 16 {
		number = ipv6.ProtocolNumber
	}
	for {
		select {
		case <-answered:
			return
		case <-time.After(time.Millisecond):
		}
		endpoint := l.stack.FindTransportEndpoint(number, tcp.ProtocolNumber, id, nic)
		if endpoint, ok := endpoint.(tcpip.Endpoint); ok {
			endpoint.Abort()
		}
	}
}

// serveConnection gives the connection to its session and waits until the connection is
// completely closed.
func (l *Link) serveConnection(ctx context.Context, c *conn, session Session) {
	size := int64(narrowBuffer)
	select {
	case l.wide <- struct{}{}:
		defer func() { <-l.wide }()
		size = wideBuffer
	default:
	}
	c.endpoint.SocketOptions().SetReceiveBufferSize(size, true)
	c.endpoint.SocketOptions().SetSendBufferSize(size, true)

	stop := context.AfterFunc(ctx, c.endpoint.Abort)
	defer stop()
	session.Serve(ctx, c)
	c.Close()
	c.drainWrites(ctx)
}

// A conn implements Conn over the stack.
type conn struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
	once     sync.Once
}

// Ready reports whether a Read would return at once.
func (c *conn) Ready() bool { return c.endpoint.Readiness(waiter.ReadableEvents) != 0 }

// Close ends pending reads and writes, and then the connection.
func (c *conn) Close() error {
	c.once.Do(func() {
		_ = c.SetDeadline(time.Unix(1, 0))
		_ = c.TCPConn.Close()
	})
	return nil
}

// drainWrites waits, for at most linger, until the sandbox has received all that was
// written. The stack keeps the data until then, so the connection still counts.
func (c *conn) drainWrites(ctx context.Context) {
	pause := time.Millisecond
	for end := time.Now().Add(linger); !c.isClosed() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return // aborted
		case <-time.After(pause):
			pause = min(2*pause, second/4)
		}
	}
	if !c.isClosed() {
		c.endpoint.Abort()
	}
}

// isClosed reports whether the connection is closed, so that the stack keeps no data of
// it.
func (c *conn) isClosed() bool {
	switch tcp.EndpointState(c.endpoint.State()) {
	case tcp.StateClose, tcp.StateError, tcp.StateTimeWait, tcp.StateInitial:
		return true
	}
	return false
}
