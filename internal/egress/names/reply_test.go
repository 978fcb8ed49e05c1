// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// lies are messages that are not an answer to a, all with an address that must not be
// used.
func lies(a asked) [][]byte {
	evil := at("a.example", "8.8.4.4", 60)
	var list [][]byte
	for _, spoil := range []func(*dnsmessage.Message){
		func(m *dnsmessage.Message) { m.ID++ },
		func(m *dnsmessage.Message) { m.Response = false },
		func(m *dnsmessage.Message) { m.OpCode = 2 },
		func(m *dnsmessage.Message) { m.Questions = nil },
		func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) },
		func(m *dnsmessage.Message) { m.Questions[0].Name = dnsmessage.MustNewName("b.example.") },
		func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeTXT },
		func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS },
	} {
		m := a.message(evil)
		m.Questions = append([]dnsmessage.Question(nil), m.Questions...)
		spoil(&m)
		b, err := m.Pack()
		if err != nil {
			panic(err)
		}
		list = append(list, b)
	}
	return append(list, nil, []byte("no message"), list[0][:11])
}

func FuzzReadReply(f *testing.F) {
	q := question{"a.example", dnsmessage.TypeA}
	asking := asked{id: 7, q: dnsmessage.Question{Name: dnsmessage.MustNewName("a.example."), Type: q.kind, Class: dnsmessage.ClassINET}}
	for _, m := range []dnsmessage.Message{
		asking.message(at("a.example", "8.8.8.8", 60)),
		asking.message(alias("a.example", "b.example", 60), at("b.example", "8.8.8.8", 60)),
		asking.message(alias("a.example", "a.example", 60)),
		asking.message(),
	} {
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, lie := range lies(asking) {
		f.Add(lie)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		r, err := readReply(message, 7, q)
		if err != nil {
			return
		}
		if len(r.addrs) > maxAddresses || (len(r.addrs) > 0 && r.alias != "") || (r.absent && len(r.addrs) > 0) {
			t.Errorf("%+v", r)
		}
		again, err := readReply(message, 8, q)
		if !errors.Is(err, errForeign) || len(again.addrs) > 0 {
			t.Errorf("read under another id: %+v, %v", again, err)
		}
		// The library's own parse of the whole message must contain every address.
		var m dnsmessage.Message
		if m.Unpack(message) != nil {
			return
		}
		held := map[netip.Addr]bool{}
		for _, a := range m.Answers {
			if b, ok := a.Body.(*dnsmessage.AResource); ok {
				held[netip.AddrFrom4(b.A)] = true
			}
		}
		for _, a := range r.addrs {
			if !held[a] {
				t.Errorf("%s is not in the message", a)
			}
		}
	})
}
