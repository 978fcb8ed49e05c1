// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"net"
	"net/netip"
	"testing"
)

func TestDefault(t *testing.T) {
	s := Default()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	got := []string{
		s.Gateway.V4.String(), s.Sandbox.V4.String(), s.Gateway.V6.String(), s.Sandbox.V6.String(),
		s.Gateway.MAC.String(), s.Sandbox.MAC.String(),
	}
	want := []string{
		"198.18.0.1", "198.18.0.2", "fd66:756d:6568::1", "fd66:756d:6568::2",
		"02:66:68:00:00:01", "02:66:68:00:00:02",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %s, want %s", got[i], want[i])
		}
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct{ name, pool4, pool6 string }{
		{"IPv6 for IPv4", "fd00::/64", ""},
		{"IPv4 for IPv6", "198.18.0.0/15", "10.0.0.0/8"},
		{"a pool of too few", "198.18.0.0/21", ""},
		{"a pool of all", "0.0.0.0/0", ""},
		{"an IPv6 pool of too few", "198.18.0.0/15", "fd00::/97"},
		{"no pool", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if s, err := New(prefix(test.pool4), prefix(test.pool6)); err == nil {
				t.Errorf("made %+v", s)
			}
		})
	}
}

func prefix(s string) netip.Prefix {
	p, _ := netip.ParsePrefix(s)
	return p
}

func TestWithout6(t *testing.T) {
	s := Default().WithoutIPv6()
	if s.Pool6.IsValid() || s.Gateway.V6.IsValid() || s.Sandbox.V6.IsValid() {
		t.Errorf("still has IPv6: %+v", s)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Segment)
	}{
		{"nothing", func(s *Segment) { *s = Segment{} }},
		{"another sandbox", func(s *Segment) { s.Sandbox.V4 = s.Sandbox.V4.Next() }},
		{"another gateway", func(s *Segment) { s.Gateway.V6 = s.Gateway.V6.Next() }},
		{"no hardware address", func(s *Segment) { s.Gateway.MAC = nil }},
		{"a group's hardware address", func(s *Segment) { s.Sandbox.MAC = net.HardwareAddr{1, 0, 0, 0, 0, 1} }},
		{"a small MTU", func(s *Segment) { s.MTU = 1000 }},
		{"a large MTU", func(s *Segment) { s.MTU = MTU + 1 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := Default()
			test.change(&s)
			if err := s.Check(); err == nil {
				t.Errorf("found nothing wrong with %+v", s)
			}
		})
	}
}
