// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpproxy"

	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// observing is a policy that allows nothing and wants to intercept everything; a layer of it denies
// fat.example by a rule of its own.
func observing(o *Options) {
	o.ObserveUnsafe = true
	o.Decide = func(_ context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
		no := proposal.EgressDecision{Effect: proposal.Deny, Rules: []string{"test.no"},
			Reason: &proposal.Reason{Rule: "test.no", Effect: proposal.Deny, Command: -1, Message: "no"}}
		if e.Name == "fat.example" {
			no.Firm = &proposal.Reason{Rule: "own.never", Effect: proposal.Deny, Command: -1, Message: "never"}
		}
		if e.Name == "www.allowed.example" {
			return proposal.EgressDecision{Effect: proposal.Allow, Rules: []string{"test.yes"}, Intercept: true, Private: true, Filter: true}, nil
		}
		return no, nil
	}
}

// Public addresses are reached on any port, by name or not, unintercepted, and the record says
// that nothing was enforced and what was said in clear.
func TestObserved(t *testing.T) {
	w, g, r := open(t, observing)
	for _, tt := range []struct{ url, want, sni string }{
		{"https://evil.example/x", "200 GET evil.example /x sni=evil.example", ""},
		{"https://www.allowed.example/x", "200 GET www.allowed.example /x sni=www.allowed.example", ""},
		{"http://evil.example:22/y", "200 GET evil.example:22 /y sni=", ""},
		{"http://" + evilAddr + "/z", "200 GET 9.9.9.10 /z sni=", ""},
		{"https://" + allowedAddr + "/z", "200 GET 9.9.9.9 /z sni=evil.example", "evil.example"},
	} {
		if got, err := get(g.client(w.pool, tt.sni), tt.url); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v", tt.url, got, err)
		}
	}
	if conn, err := g.dial(t.Context(), "tcp", "evil.example:443"); err != nil {
		t.Error(err)
	} else {
		fmt.Fprint(conn, "not TLS at all\n") // no protocol is required
		_, _ = conn.Read(make([]byte, 100))
		conn.Close()
	}
	r.wait(10)
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	var connections []string
	for i, e := range r.events {
		f := e.Flow
		if f.Verdict != proposal.VerdictObserved || f.Decision.Effect != proposal.Allow || f.Decision.Intercept || f.Decision.Private || f.Code != "" {
			t.Errorf("%+v", f)
		}
		if would := f.Egress.Name != "www.allowed.example"; f.Decision.Observed != would {
			t.Errorf("%s would be refused: %v", r.lines()[i], f.Decision.Observed)
		}
		if e.Kind == proposal.EventConnection {
			connections = append(connections, r.lines()[i])
		}
	}
	slices.Sort(connections) // each is reported when it ends, and nothing says which ends first
	want := []string{
		"connection  9.9.9.10:80 allow sni=9.9.9.10",
		"connection  9.9.9.9:443 allow sni=evil.example",
		"connection evil.example 9.9.9.10:22 allow sni=evil.example",
		"connection evil.example 9.9.9.10:443 allow",
		"connection evil.example 9.9.9.10:443 allow sni=evil.example",
		"connection www.allowed.example 9.9.9.9:443 allow sni=www.allowed.example",
	}
	if d := cmp.Diff(want, connections); d != "" {
		t.Error(d)
	}
}

// What is refused whatever policy says is refused here, too: addresses that are not public, those of
// the host, and everything but TCP; and so is what a layer denies by a rule of its own.
func TestObservedRefusals(t *testing.T) {
	lanetest.SkipShort(t)
	for _, tt := range []struct {
		name string
		try  func(*world, *Gateway) error
		want string
	}{
		{"metadata", fetch("http://" + metadataAddr + "/"), "connection  169.254.169.254:80 allow (address)"},
		{"private", fetch("http://" + privateAddr + "/"), "connection  10.9.9.9:80 allow (address)"},
		{"host", fetch("http://" + hostAddr + ":443/"), "connection  9.9.9.1:443 allow (address)"},
		{"loopback", fetch("https://local.example/"), "lookup local.example 127.0.0.1:0 allow (address)"},
		{"name of the host", fetch("https://host.example/"), "lookup host.example 9.9.9.1:0 allow (address)"},
		{"name of metadata", fetch("http://metadata.example/"), "lookup metadata.example 169.254.169.254:0 allow (address)"},
		{"name of a private address", fetch("http://private.example/"), "lookup private.example 10.9.9.9:0 allow (address)"},
		{"name of one private address", fetch("http://mixed.example/"), "lookup mixed.example 10.9.9.9:0 allow (address)"},
		{"a layer's own denial", fetch("https://fat.example/"), "lookup fat.example :0 deny (policy)"},
		{"datagram", send("udp", evilAddr+":443"), "datagram  9.9.9.10:443 deny (policy)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, g, r := open(t, observing)
			if err := tt.try(w, g); err == nil {
				t.Error("it went through")
			}
			if err := g.End(); err != nil {
				t.Fatal(err)
			}
			if lines := r.lines(); len(lines) == 0 || lines[len(lines)-1] != tt.want {
				t.Errorf("got %q, want %q at the end", lines, tt.want)
			}
			for _, e := range r.events {
				if e.Flow.Egress.Name == "fat.example" && e.Flow.Decision.Reason.Rule != "own.never" {
					t.Errorf("%+v", e.Flow.Decision.Reason)
				}
				if e.Flow.Refused() && e.Flow.Verdict != "" {
					t.Errorf("refused, and %s: %+v", e.Flow.Verdict, e.Flow)
				}
			}
			if got := w.connections(); len(got) > 0 {
				t.Errorf("connected to %v", got)
			}
		})
	}
}

// Without the option nothing is observed, whatever policy answers, and credentials and the option
// exclude each other.
func TestObservedByOptionAlone(t *testing.T) {
	_, g, r := open(t, func(o *Options) {
		observing(o)
		o.ObserveUnsafe = false
	})
	var dns *net.DNSError
	if _, err := g.lookup(t.Context(), "evil.example"); !errors.As(err, &dns) {
		t.Errorf("a name that policy denies: %v", err)
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	if lines := r.lines(); len(lines) == 0 || slices.ContainsFunc(lines, func(l string) bool { return !strings.HasSuffix(l, "deny (policy)") }) {
		t.Errorf("%q", lines)
	}
	var err error
	o := optionsFor(outside(t), &record{})
	observing(&o)
	o.Credentials = []wire.Credential{{Name: "n", Host: "a.example", Value: "v"}}
	if g, err := Start(t.Context(), o); err == nil {
		g.Close()
		t.Error("started with credentials")
	}
	o.Credentials = nil
	if o.Proxies, err = upstream.Parse(&httpproxy.Config{HTTPSProxy: "http://192.0.2.1:3128"}); err != nil {
		t.Fatal(err)
	}
	if g, err := Start(t.Context(), o); err == nil {
		g.Close()
		t.Error("started with a proxy, which would choose the addresses")
	}
}
