// SPDX-License-Identifier: Apache-2.0

package names

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/fumehood/fumehood/internal/egress/segment"
)

func take(t *testing.T, p *Pool, name string) (v4, v6 netip.Addr) {
	t.Helper()
	v4, v6, err := p.AssignAddresses(name)
	if err != nil {
		t.Fatalf("Take(%q): %v", name, err)
	}
	return v4, v6
}

func TestPoolGivesEachNameItsOwn(t *testing.T) {
	p := NewPool(segment.Default())
	given := map[netip.Addr]bool{}
	for i := range MaxNames {
		name := fmt.Sprintf("h%d.example", i)
		v4, v6 := take(t, p, name)
		for _, a := range []netip.Addr{v4, v6} {
			if given[a] || !p.IsSynthetic(a) {
				t.Fatalf("%s for %s was given before, or is none of ours", a, name)
			}
			given[a] = true
			if got, ok := p.Name(a); !ok || got != name {
				t.Fatalf("Name(%s) = %q, want %q", a, got, name)
			}
		}
		if b4, b6 := take(t, p, name); b4 != v4 || b6 != v6 {
			t.Fatalf("a second Take(%q) gives others", name)
		}
	}
	if _, _, err := p.AssignAddresses("one-more.example"); !errors.Is(err, ErrFull) {
		t.Errorf("Take beyond the bound: %v, want ErrFull", err)
	}
}

func TestPoolForgets(t *testing.T) {
	p := NewPool(segment.Default())
	v4, v6 := take(t, p, "a.example")
	p.ForgetAddresses()
	if p.HasAddresses("a.example") {
		t.Error("the name is still known")
	}
	next4, next6 := take(t, p, "b.example")
	if next4 == v4 || next6 == v6 {
		t.Error("an address of a forgotten name was given to another")
	}
	for _, a := range []netip.Addr{v4, v6} {
		if name, ok := p.Name(a); ok {
			t.Errorf("Name(%s) = %q after Forget", a, name)
		}
	}
}

// The whole range can be used up, and no address is given twice.
func TestPoolEnds(t *testing.T) {
	p := NewPool(segment.Default())
	given := 0
	for {
		_, _, err := p.AssignAddresses(fmt.Sprint("h", given, ".example"))
		if err == nil {
			given++
			continue
		}
		if given%MaxNames != 0 || len(p.nums) == 0 {
			break
		}
		p.ForgetAddresses()
	}
	if given != int(p.size) {
		t.Errorf("%d names, want %d", given, p.size)
	}
	if last := p.address4(p.size - 1); last.String() != "198.19.254.255" {
		t.Errorf("the last address is %s", last)
	}
}

func TestPoolAddressesOfNoName(t *testing.T) {
	p := NewPool(segment.Default())
	take(t, p, "a.example")
	for _, a := range []string{
		"198.18.0.0", "198.18.0.1", "198.18.0.2", "198.18.0.255", "198.18.1.1", "198.19.255.255", "198.17.255.255", "198.20.0.0",
		"fd66:756d:6568::", "fd66:756d:6568::1", "fd66:756d:6568::ff", "fd66:756d:6568::101", "fd66:756d:6568::1:0:100",
		"fd66:756d:6568:1::100", "fd66:756d:6568::100%eth0", "::ffff:198.18.1.0", "2606:2800::100", "0.0.0.0", "::",
	} {
		if name, ok := p.Name(netip.MustParseAddr(a)); ok {
			t.Errorf("%s stands for %q", a, name)
		}
	}
	if name, ok := p.Name(netip.Addr{}); ok {
		t.Errorf("the zero Addr stands for %q", name)
	}
	for _, a := range []string{"198.18.1.0", "fd66:756d:6568::100"} {
		if name, _ := p.Name(netip.MustParseAddr(a)); name != "a.example" {
			t.Errorf("%s stands for %q, want a.example", a, name)
		}
	}
}

func TestPoolWithout6(t *testing.T) {
	p := NewPool(segment.Default().WithoutIPv6())
	if _, v6 := take(t, p, "a.example"); v6.IsValid() {
		t.Errorf("gave %s", v6)
	}
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("fd66:756d:6568::100"), netip.MustParseAddr("::100")} {
		if name, ok := p.Name(a); ok || p.IsSynthetic(a) {
			t.Errorf("%s stands for %q", a, name)
		}
	}
}

// The sandbox's, the gateway's and other reserved addresses are never given to a
// name.
func TestPoolLeavesTheEnds(t *testing.T) {
	s := segment.Default()
	p := NewPool(s)
	for _, a := range []netip.Addr{s.Gateway.V4, s.Gateway.V6, s.Sandbox.V4, s.Sandbox.V6} {
		if _, ok := p.addressNumber(a); ok || !p.IsSynthetic(a) {
			t.Errorf("%s may be a name's, or is none of ours", a)
		}
	}
}

func TestPoolFromManyGoroutines(t *testing.T) {
	p := NewPool(segment.Default())
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("h%d.example", (i+g)%100)
				v4, _, err := p.AssignAddresses(name)
				if got, ok := p.Name(v4); err != nil || !ok || got != name {
					t.Errorf("Name(%s) = %q, %v; want %q", v4, got, err, name)
				}
			}
		})
	}
	wg.Wait()
	if p.next != 100 {
		t.Errorf("%d given, want 100", p.next)
	}
}

func TestSynthetic(t *testing.T) {
	p := NewPool(segment.Default())
	for a, want := range map[string]bool{
		"198.18.0.1": true, "198.19.255.255": true, "::ffff:198.18.0.1": true, "fd66:756d:6568::9:9": true, "fd66:756d:6568::1%eth0": true,
		"198.20.0.0": false, "fd66:756d:6569::1": false, "10.0.0.1": false,
	} {
		if got := p.IsSynthetic(netip.MustParseAddr(a)); got != want {
			t.Errorf("Synthetic(%s) = %v", a, got)
		}
	}
}
