// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
)

const (
	// longestQuery is more than any query for one name needs.
	longestQuery = 4096
	// maxQueries is the maximum number of queries on one TCP connection.
	maxQueries = 64
	// idleQuery is the maximum time between them.
	idleQuery = 10 * second
)

// listenDNS starts to answer queries that arrive as datagrams.
func (l *Link) listenDNS() error {
	for own := range l.config.gatewayPeers() {
		number := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
		if own.Is6() {
			number = ipv6.ProtocolNumber
		}
		local := tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(own.AsSlice()), Port: 53}
		c, err := gonet.DialUDP(l.stack, &local, nil, number)
		if err != nil {
			return err
		}
		go l.answerDatagrams(c)
	}
	return nil
}

// answerDatagrams reads and answers queries until the stack ends.
func (l *Link) answerDatagrams(c *gonet.UDPConn) {
	defer c.Close()
	message := make([]byte, longestQuery+1)
	for {
		n, from, err := c.ReadFrom(message)
		if err != nil {
			return
		}
		if n > longestQuery || !l.takeQueryToken() {
			l.counts.busy.Add(1)
			continue
		}
		question := append([]byte(nil), message[:n]...)
		ctx, done := l.joinEpoch()
		go func() {
			defer done()
			defer l.returnQueryToken()
			if reply := l.handler.Query(ctx, "udp", question); len(reply) > 0 && ctx.Err() == nil {
				_, _ = c.WriteTo(reply, from)
			}
		}()
	}
}

// takeQueryToken takes a token for a query, if there is one.
func (l *Link) takeQueryToken() bool {
	select {
	case l.queries <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *Link) returnQueryToken() { <-l.queries }

// tcpQueries serves DNS over TCP.
type tcpQueries struct{ link *Link }

func (q tcpQueries) Abandon() {}

func (q tcpQueries) Serve(ctx context.Context, conn Conn) {
	for range maxQueries {
		_ = conn.SetDeadline(deadlineAfter(idleQuery))
		if err := q.answerMessage(ctx, conn); err != nil {
			return
		}
	}
}

var errQuery = errors.New("invalid question")

// answerMessage answers one message, which is preceded by its length (RFC 1035, 4.2.2).
func (q tcpQueries) answerMessage(ctx context.Context, conn Conn) error {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	if len(message) == 0 || len(message) > longestQuery {
		return errQuery
	}
	if _, err := io.ReadFull(conn, message); err != nil {
		return err
	}
	if !q.link.takeQueryToken() {
		q.link.counts.busy.Add(1)
		return errQuery
	}
	defer q.link.returnQueryToken()
	reply := q.link.handler.Query(ctx, "tcp", message)
	if len(reply) == 0 || len(reply) > 1<<16-1 {
		return errQuery
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}
