// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/wire"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A program with as many open queries as it may have does not end the run: further queries
// wait.
func TestAttackQuestionsAtOnce(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	rounds := sample.Rounds(t, 20, 4, 1)
	_, g, r := open(t, func(o *Options) {
		o.Events = 1 << 20
		o.Decide = func(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
			time.Sleep(time.Millisecond)
			return house(ctx, e)
		}
	})
	found, err := g.lookup(t.Context(), "allowed.example")
	if err != nil {
		t.Fatal(err)
	}
	var programs sync.WaitGroup
	for range 2 * wire.MaxAsks {
		programs.Go(func() {
			for range rounds {
				if conn, err := g.dialAddr(t.Context(), "tcp", found[0]+":22"); err == nil { // denied
					conn.Close()
				}
			}
		})
	}
	programs.Wait()
	select {
	case err := <-r.failed:
		t.Error(err)
	default:
	}
}

// If a host's first address does not answer, policy is asked before the second is tried.
func TestAttackSecondAddress(t *testing.T) {
	w, g, r := open(t, func(o *Options) {
		o.Decide = func(ctx context.Context, e proposal.Egress) (proposal.EgressDecision, error) {
			if e.Address == evilAddr {
				return proposal.EgressDecision{Rules: []string{"test.evil"}}, nil
			}
			return house(ctx, e)
		}
	})
	if got, err := get(g.client(w.pool, ""), "http://fallback.example/"); err == nil {
		t.Errorf("answered %s", got)
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	if got := w.connections(); len(got) > 0 {
		t.Errorf("connected to %v", got)
	}
	if want := "connection fallback.example " + evilAddr + ":80 deny (policy)"; !slices.Contains(r.lines(), want) {
		t.Errorf("reported\n%s", strings.Join(r.lines(), "\n"))
	}
}

// Addresses that the pool never gave out, in any spelling, map to no name.
func TestAttackInventedAddresses(t *testing.T) {
	w, g, r := open(t, nil)
	if _, err := g.lookup(t.Context(), "allowed.example"); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"198.18.0.1:443", "198.18.0.3:443", "198.18.2.0:443", "198.19.255.255:443", "[64:ff9b::909:909]:443",
		"[64:ff9b::a9fe:a9fe]:80", "[2002:909:909::1]:443", "[2620:fe::9]:443", "9.9.9.9:443", hostAddr + ":443", "169.254.169.254:80",
		"[fd00:ec2::254]:80", "100.100.100.200:80", "0.0.0.1:443", "240.0.0.1:443", "10.9.9.9:80"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if conn, err := g.dialAddr(ctx, "tcp", to); err == nil {
			conn.Close()
			t.Errorf("%s can be connected to", to)
		}
		cancel()
	}
	if err := g.End(); err != nil {
		t.Fatal(err)
	}
	if got := w.connections(); len(got) > 0 {
		t.Errorf("connected to %v", got)
	}
	for _, line := range r.lines()[1:] {
		if strings.HasPrefix(line, "connection") && strings.Contains(line, " allow") {
			t.Errorf("reported %s", line)
		}
	}
}

// Many long, never-ending heads do not exceed the process's memory, and other connections
// are served meanwhile.
func TestAttackHalfHeads(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	w, g, r := open(t, nil)
	found, err := g.lookup(t.Context(), "allowed.example")
	if err != nil {
		t.Fatal(err)
	}
	head := "GET / HTTP/1.1\r\nHost: allowed.example\r\nX: " + strings.Repeat("x", 60<<10)
	var programs sync.WaitGroup
	for range sample.Rounds(t, 1000, 200, 50) {
		programs.Go(func() {
			conn, err := g.dialAddr(t.Context(), "tcp", found[0]+":80")
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			_, _ = io.WriteString(conn, head)
		})
	}
	programs.Wait()
	if got, err := get(g.client(w.pool, ""), "http://allowed.example/"); err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := g.End(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-r.failed:
		t.Error(err)
	default:
	}
	t.Log(fmt.Sprint(len(r.lines()), " reported"))
}

// unreadBody sends an HTTP/2 request with an endless body, until ctx ends.
func unreadBody(ctx context.Context, g *Gateway, to string) {
	c := &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return g.dialAddr(ctx, "tcp", to) },
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}}
	request, _ := http.NewRequestWithContext(ctx, "GET", "https://www.allowed.example/hang", io.NopCloser(zeros{}))
	if answer, err := c.Do(request); err == nil {
		answer.Body.Close()
	}
}

// Many bodies that are never read do not exceed the process's memory.
func TestAttackUnreadBodies(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	_, g, r := open(t, nil)
	found, err := g.lookup(t.Context(), "www.allowed.example")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var programs sync.WaitGroup
	n := unreads(t) / 2
	for range n {
		programs.Go(func() { unreadBody(ctx, g, found[0]+":443") })
	}
	peak := settled(t, g)
	cancel()
	programs.Wait()
	t.Logf("%.0f MB in use", peak/1e6)
	select {
	case err := <-r.failed:
		t.Fatal(err)
	default:
	}
	if peak > maxUnread(2*n) {
		t.Errorf("%.0f MB in use", peak/1e6)
	}
}
