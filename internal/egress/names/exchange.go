// SPDX-License-Identifier: Apache-2.0

package names

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"
)

const (
	rounds     = 3    // over all servers
	maxForeign = 64   // datagrams that are not an answer, before giving up
	maxMessage = 1232 // for UDP: the size that no network fragments
)

// queryServers queries the servers in turn, for several rounds, until one answers within
// patience.
func queryServers(ctx context.Context, servers []netip.AddrPort, patience time.Duration, q question) (reply, error) {
	first := errors.New("no server to ask")
	for i := range rounds * len(servers) {
		r, err := queryServer(ctx, servers[i%len(servers)], patience, q)
		if err == nil {
			return r, nil
		}
		if i == 0 {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return reply{}, first
}

// queryServer queries one server by UDP, and by TCP if the answer is truncated.
func queryServer(ctx context.Context, server netip.AddrPort, patience time.Duration, q question) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := exchangeMessage(ctx, "udp", server, q)
	if errors.Is(err, errTruncated) {
		r, err = exchangeMessage(ctx, "tcp", server, q)
	}
	if err != nil {
		return reply{}, fmt.Errorf("cannot ask %s for %s: %w", server, q.name, err)
	}
	return r, nil
}

// exchangeMessage sends q with an unpredictable id from its own port, and reads until the
// answer to it arrives.
func exchangeMessage(ctx context.Context, network string, server netip.AddrPort, q question) (reply, error) {
	var random [2]byte
	if _, err := rand.Read(random[:]); err != nil {
		return reply{}, err
	}
	id := binary.BigEndian.Uint16(random[:])
	message, err := q.packQuery(id)
	if err != nil {
		return reply{}, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, server.String())
	if err != nil {
		return reply{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if network == "tcp" {
		return exchangeStream(conn, message, id, q)
	}
	return exchangeDatagrams(conn, message, id, q)
}

func exchangeDatagrams(conn net.Conn, message []byte, id uint16, q question) (reply, error) {
	if _, err := conn.Write(message); err != nil {
		return reply{}, err
	}
	buf := make([]byte, 4096)
	for range maxForeign {
		n, err := conn.Read(buf)
		if err != nil {
			return reply{}, err
		}
		r, err := readReply(buf[:n], id, q)
		if !errors.Is(err, errForeign) {
			return r, err
		}
	}
	return reply{}, errForeign
}

func exchangeStream(conn net.Conn, message []byte, id uint16, q question) (reply, error) {
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(message)))
	if _, err := conn.Write(append(framed, message...)); err != nil {
		return reply{}, err
	}
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return reply{}, err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return reply{}, err
	}
	return readReply(answer, id, q)
}
