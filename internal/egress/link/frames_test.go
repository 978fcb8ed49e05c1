// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

var (
	own4, own6   = segment.Default().Sandbox.V4, segment.Default().Sandbox.V6
	host4, host6 = netip.MustParseAddr("198.18.0.77"), netip.MustParseAddr("fd66:756d:6568::77")
)

// first returns the first segment of a connection.
func first(from, to netip.Addr, odd func([]byte) []byte) frame {
	a, b := netip.AddrPortFrom(from, 40000), netip.AddrPortFrom(to, 443)
	return frame{from, to, 6, tcpSegment(a, b, header.TCPFlagSyn), odd}
}

func put8(at int, value byte) func([]byte) []byte {
	return func(b []byte) []byte { b[at] = value; return b }
}

const network = header.EthernetMinimumSize // where the packet begins

// Each is a connection's first segment with exactly one thing wrong, so that only this
// can be the reason to drop it.
var oddFrames = map[string]frame{
	"spoofed source":                      first(netip.MustParseAddr("198.18.0.9"), host4, nil),
	"the gateway's source":                first(segment.Default().Gateway.V4, host4, nil),
	"spoofed source IPv6":                 first(netip.MustParseAddr("fd66:756d:6568::9"), host6, nil),
	"no source":                           first(netip.IPv4Unspecified(), host4, nil),
	"no source IPv6":                      first(netip.IPv6Unspecified(), host6, nil),
	"to itself":                           first(own4, own4, nil),
	"to itself IPv6":                      first(own6, own6, nil),
	"to loopback":                         first(own4, netip.MustParseAddr("127.0.0.1"), nil),
	"to loopback IPv6":                    first(own6, netip.IPv6Loopback(), nil),
	"to nowhere":                          first(own4, netip.IPv4Unspecified(), nil),
	"to nowhere IPv6":                     first(own6, netip.IPv6Unspecified(), nil),
	"to IPv4 within IPv6":                 first(own6, netip.MustParseAddr("::ffff:198.18.0.77"), nil),
	"to a group":                          first(own4, netip.MustParseAddr("224.0.0.1"), nil),
	"to a group IPv6":                     first(own6, netip.MustParseAddr("ff02::1"), nil),
	"to all":                              first(own4, netip.MustParseAddr("255.255.255.255"), nil),
	"frame to all":                        first(own4, host4, func(b []byte) []byte { copy(b, "\xff\xff\xff\xff\xff\xff"); return b }),
	"frame to another host":               first(own4, host4, put8(5, 9)),
	"frame from another host":             first(own4, host4, put8(11, 9)),
	"ARP":                                 first(own4, host4, put16(12, 0x0806)),
	"VLAN":                                first(own4, host4, put16(12, 0x8100)),
	"IPv6 that says it is IPv4":           first(own6, host6, put16(12, 0x0800)),
	"IPv4 that says it is IPv6":           first(own4, host4, put16(12, 0x86dd)),
	"version 5":                           first(own4, host4, put8(network, 0x55)),
	"options":                             first(own4, host4, put8(network, 0x46)),
	"a short header":                      first(own4, host4, put8(network, 0x44)),
	"more than came":                      first(own4, host4, put16(network+2, 1500)),
	"less than a header":                  first(own4, host4, put16(network+2, 19)),
	"the first fragment":                  first(own4, host4, put16(network+6, 0x2000)),
	"a later fragment":                    first(own4, host4, put16(network+6, 0x0001)),
	"the reserved flag":                   first(own4, host4, put16(network+6, 0x8000)),
	"more than came IPv6":                 first(own6, host6, put16(network+4, 1500)),
	"nothing within IPv6":                 first(own6, host6, put16(network+4, 0)),
	"hop-by-hop options":                  first(own6, host6, put8(network+6, 0)),
	"a routing header":                    first(own6, host6, put8(network+6, 43)),
	"a fragment header":                   first(own6, host6, put8(network+6, 44)),
	"destination options":                 first(own6, host6, put8(network+6, 60)),
	"no next header":                      first(own6, host6, put8(network+6, 59)),
	"an encapsulated packet":              first(own6, host6, put8(network+6, 50)),
	"half a frame":                        first(own4, host4, func(b []byte) []byte { return b[:network+10] }),
	"half a packet":                       first(own4, host4, func(b []byte) []byte { return b[:network+24] }),
	"half a frame IPv6":                   first(own6, host6, func(b []byte) []byte { return b[:network+30] }),
	"only an Ethernet header":             first(own4, host4, func(b []byte) []byte { return b[:network] }),
	"ICMP for IPv6 within IPv4":           {own4, host4, 58, make([]byte, 8), nil},
	"ICMP for IPv4 within IPv6":           {own6, host6, 1, make([]byte, 8), nil},
	"a question from elsewhere":           question(netip.MustParseAddr("198.18.0.9"), nil),
	"a question in a fragment":            question(own4, put16(network+6, 0x2000)),
	"a question with a frame for another": question(own4, put8(5, 9)),
}

func question(from netip.Addr, odd func([]byte) []byte) frame {
	to := segment.Default().Gateway.V4
	a, b := netip.AddrPortFrom(from, 40000), netip.AddrPortFrom(to, 53)
	return frame{from, to, 17, udpDatagram(a, b, []byte("question")), odd}
}

func TestOddFramesAreDropped(t *testing.T) {
	w, peer := newPiped(t, &world{
		admit: admitEcho,
		query: func(context.Context, string, []byte) []byte { t.Error("a question was put"); return nil },
	}, Config{})
	for name, f := range oddFrames {
		t.Run(name, func(t *testing.T) {
			before := w.Stats()
			if _, err := peer.Write(f.bytes(w.Link)); err != nil {
				t.Fatal(err)
			}
			// The link preserves order, so the answer to a plain frame shows that the
			// one before it was processed.
			sentinel(t, w, peer, before.Frames+2)
			eventually(t, "the datagram is counted", func() bool { return w.Stats().Datagrams > before.Datagrams })
			now := w.Stats()
			if frames, odd := now.Frames-before.Frames, now.Odd-before.Odd; frames != 2 || odd != 1 {
				t.Errorf("of %d frames, %d were dropped as odd; want 1 of 2", frames, odd)
			}
			if now.Connections != before.Connections || now.Datagrams != before.Datagrams+1 {
				t.Errorf("%+v became %+v", before, now)
			}
		})
	}
	if asked := w.askedFor(); len(asked) > 0 {
		t.Errorf("the handler was asked for %q", asked)
	}
}

// sentinel sends a datagram and waits until it was processed, that is, until the link
// has received this number of frames: the link preserves order.
func sentinel(t testing.TB, w *world, peer *os.File, frames uint64) {
	t.Helper()
	from, to := netip.AddrPortFrom(own4, 40001), netip.AddrPortFrom(host4, 9)
	f := frame{own4, host4, 17, udpDatagram(from, to, nil), nil}
	if _, err := peer.Write(f.bytes(w.Link)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); w.Stats().Frames < frames; {
		if time.Now().After(end) {
			t.Fatal("a plain datagram was not looked at")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// The table's frames pass when nothing is wrong with them.
func TestPlainFramesPass(t *testing.T) {
	for name, f := range map[string]frame{"IPv4": first(own4, host4, nil), "IPv6": first(own6, host6, nil)} {
		w, peer := newPiped(t, &world{admit: admitEcho}, Config{})
		if _, err := peer.Write(f.bytes(w.Link)); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": the handler is asked", func() bool { return len(w.askedFor()) == 1 })
	}
	asked := make(chan string, 1)
	w, peer := newPiped(t, &world{query: func(_ context.Context, _ string, m []byte) []byte { asked <- string(m); return m }}, Config{})
	if _, err := peer.Write(question(own4, nil).bytes(w.Link)); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "question" {
		t.Errorf("asked %q", got)
	}
}

// A frame with an invalid checksum starts no connection.
func TestFalseChecksumIsDropped(t *testing.T) {
	w, peer := newPiped(t, &world{admit: admitEcho}, Config{})
	for _, f := range []frame{first(own4, host4, put8(network+20+8, 1)), first(own6, host6, put8(network+40+8, 1)), first(own4, host4, put8(network+8, 1))} {
		before := w.Stats()
		if _, err := peer.Write(f.bytes(w.Link)); err != nil {
			t.Fatal(err)
		}
		sentinel(t, w, peer, before.Frames+2)
	}
	time.Sleep(50 * time.Millisecond)
	if asked := w.askedFor(); len(asked) > 0 {
		t.Errorf("the handler was asked for %q", asked)
	}
}

// FuzzFrames sends frames: only whole TCP segments and DNS queries from the sandbox's
// own address ever reach the handler, and the link survives all frames.
func FuzzFrames(f *testing.F) {
	w, peer := newPiped(f, &world{query: func(context.Context, string, []byte) []byte { return nil }}, Config{})
	for _, seed := range oddFrames {
		f.Add(seed.bytes(w.Link))
	}
	f.Add(first(own4, host4, nil).bytes(w.Link))
	f.Add(first(own6, host6, nil).bytes(w.Link))
	f.Add(question(own4, nil).bytes(w.Link))
	go drainFrames(peer)
	targets := map[string]bool{}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > 60000 {
			return
		}
		if to, ok := target(b); ok {
			targets[to] = true
		}
		before := w.Stats()
		if _, err := peer.Write(b); err != nil {
			t.Fatal(err)
		}
		sentinel(t, w, peer, before.Frames+2)
		now := w.Stats()
		if now.Frames != before.Frames+2 {
			t.Fatalf("%d frames of two", now.Frames-before.Frames)
		}
		for _, to := range w.takeAsked() {
			if !targets[to] { // an earlier frame may have been processed later
				t.Errorf("no plain frame asked for %s; the last is % x", to, b[:min(len(b), 80)])
			}
		}
	})
}

// target returns the destination of a frame with a plain TCP segment from the sandbox's
// own address. It decides by the specification of the headers, not with the gate.
func target(b []byte) (string, bool) {
	if len(b) < network+40 {
		return "", false
	}
	ip := b[network:]
	switch {
	case string(b[12:14]) == "\x08\x00" && ip[0] == 0x45 && ip[9] == 6 && ip[6]&^0x40 == 0 && ip[7] == 0 &&
		netip.AddrFrom4([4]byte(ip[12:16])) == own4:
		to := netip.AddrFrom4([4]byte(ip[16:20]))
		return netip.AddrPortFrom(to, uint16(ip[22])<<8|uint16(ip[23])).String(), true
	case string(b[12:14]) == "\x86\xdd" && len(ip) >= 60 && ip[0]>>4 == 6 && ip[6] == 6 &&
		netip.AddrFrom16([16]byte(ip[8:24])) == own6:
		to := netip.AddrFrom16([16]byte(ip[24:40]))
		return netip.AddrPortFrom(to, uint16(ip[42])<<8|uint16(ip[43])).String(), true
	}
	return "", false
}

func drainFrames(peer *os.File) {
	b := make([]byte, 70000)
	for {
		if _, err := peer.Read(b); err != nil {
			return
		}
	}
}
