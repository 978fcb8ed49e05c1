// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func question(t *testing.T, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnswerLookup(t *testing.T) {
	tests := map[string]struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want string // the address
	}{
		"unknown":         {"x.invalid.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		"unknown, IPv6":   {"pypi.org.", dnsmessage.TypeAAAA, dnsmessage.RCodeNameError, ""},
		"the root":        {".", dnsmessage.TypeNS, dnsmessage.RCodeNameError, ""},
		"not below it":    {"xlocalhost.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		"localhost":       {"localhost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "127.0.0.1"},
		"below":           {"api.LocalHost.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "127.0.0.1"},
		"below, IPv6":     {"api.localhost.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, "::1"},
		"another type":    {"api.localhost.", dnsmessage.TypeMX, dnsmessage.RCodeSuccess, ""},
		"the longest one": {strings.Repeat(strings.Repeat("a", 49)+".", 5), dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			asked := question(t, tt.name, tt.kind)
			var m dnsmessage.Message
			if err := m.Unpack(answerLookup(asked)); err != nil {
				t.Fatal(err)
			}
			if !m.Response || m.ID != 7 || m.RCode != tt.code || len(m.Questions) != 1 || m.Questions[0].Name.String() != tt.name {
				t.Errorf("got %+v", m)
			}
			got := ""
			for _, a := range m.Answers {
				switch r := a.Body.(type) {
				case *dnsmessage.AResource:
					got = netip.AddrFrom4(r.A).String()
				case *dnsmessage.AAAAResource:
					got = netip.AddrFrom16(r.AAAA).String()
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What is not one question has no answer.
func TestAnswerLookupInvalid(t *testing.T) {
	asked := question(t, "api.localhost.", dnsmessage.TypeA)
	for n := range asked {
		if answer := answerLookup(asked[:n]); answer != nil {
			t.Errorf("answered the first %d bytes: %x", n, answer)
		}
	}
	for at, value := range map[int]byte{2: 0x80, 4: 1, 12: 0xc0, 5: 2} {
		bad := append([]byte{}, asked...)
		bad[at] = value
		if answer := answerLookup(bad); answer != nil {
			t.Errorf("answered with byte %d changed to %#x: %x", at, value, answer)
		}
	}
}
