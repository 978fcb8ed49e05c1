// SPDX-License-Identifier: Apache-2.0

package names

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// An upstream is a name server on loopback. answer is called with each query and may send anything.
type upstream struct {
	addr   netip.AddrPort
	answer func(a asked)

	mu    sync.Mutex
	count map[string]int // queries, by network, type and name
}

// asked is one query and the way to answer it.
type asked struct {
	network string
	id      uint16
	q       dnsmessage.Question
	name    string
	send    func([]byte)
}

func newUpstream(t testing.TB, answer func(asked)) *upstream {
	t.Helper()
	datagrams, streams := listenBoth(t)
	u := &upstream{answer: answer, count: map[string]int{}, addr: datagrams.LocalAddr().(*net.UDPAddr).AddrPort()}
	t.Cleanup(func() { datagrams.Close(); streams.Close() })
	go u.datagrams(datagrams)
	go u.streams(streams)
	return u
}

// listenBoth listens on one port for UDP and TCP. The kernel picks a port that is free for TCP; if
// it is taken for UDP, the next one is tried.
func listenBoth(t testing.TB) (*net.UDPConn, net.Listener) {
	t.Helper()
	for range 100 {
		streams, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := streams.Addr().(*net.TCPAddr)
		if datagrams, err := net.ListenUDP("udp4", &net.UDPAddr{IP: addr.IP, Port: addr.Port}); err == nil {
			return datagrams, streams
		}
		streams.Close()
	}
	t.Fatal("no port is free for UDP and TCP")
	return nil, nil
}

func (u *upstream) datagrams(c *net.UDPConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		message := append([]byte(nil), buf[:n]...)
		go u.take("udp", message, func(b []byte) { c.WriteToUDPAddrPort(b, from) })
	}
}

func (u *upstream) streams(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var length [2]byte
			if _, err := io.ReadFull(c, length[:]); err != nil {
				return
			}
			message := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(c, message); err != nil {
				return
			}
			u.take("tcp", message, func(b []byte) { c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)) })
		}()
	}
}

func (u *upstream) take(network string, message []byte, send func([]byte)) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil {
		return
	}
	q, err := p.Question()
	if err != nil {
		return
	}
	a := asked{network: network, id: h.ID, q: q, name: textOf(q.Name), send: send}
	u.mu.Lock()
	u.count[network+" "+typeName(q.Type)+" "+a.name]++
	u.mu.Unlock()
	u.answer(a)
}

func (u *upstream) counted(key string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count[key]
}

// message returns an answer to a, for a test to corrupt.
func (a asked) message(records ...dnsmessage.Resource) dnsmessage.Message {
	return dnsmessage.Message{
		Header:    dnsmessage.Header{ID: a.id, Response: true, RecursionDesired: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{a.q},
		Answers:   records,
	}
}

func (a asked) reply(m dnsmessage.Message) {
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	a.send(b)
}

// replyOwn answers with the records of the queried type, and aliases.
func (a asked) replyOwn(records ...dnsmessage.Resource) {
	var own []dnsmessage.Resource
	for _, r := range records {
		if _, alias := r.Body.(*dnsmessage.CNAMEResource); alias || isType(r.Body, a.q.Type) {
			own = append(own, r)
		}
	}
	a.reply(a.message(own...))
}

func (a asked) replyCode(code dnsmessage.RCode) {
	m := a.message()
	m.RCode = code
	a.reply(m)
}

func isType(b dnsmessage.ResourceBody, t dnsmessage.Type) bool {
	switch b.(type) {
	case *dnsmessage.AResource:
		return t == dnsmessage.TypeA
	case *dnsmessage.AAAAResource:
		return t == dnsmessage.TypeAAAA
	}
	return false
}

// at returns a record with name's address.
func at(name, addr string, ttl uint32) dnsmessage.Resource {
	a := netip.MustParseAddr(addr)
	var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: a.As16()}
	if a.Is4() {
		body = &dnsmessage.AResource{A: a.As4()}
	}
	return dnsmessage.Resource{Header: header(name, ttl), Body: body}
}

// alias returns a record that makes name an alias of to.
func alias(name, to string, ttl uint32) dnsmessage.Resource {
	return dnsmessage.Resource{Header: header(name, ttl), Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to + ".")}}
}

func header(name string, ttl uint32) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name + "."), Class: dnsmessage.ClassINET, TTL: ttl}
}

const moment = 20 * time.Millisecond
