// SPDX-License-Identifier: Apache-2.0

//go:build linux

package egress

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A thousand connections on which the server sends without end, and nobody reads, and
// as many on which the program does: what waits in the gateway is bounded.
func TestUnread(t *testing.T) {
	_, g, r := open(t, nil)
	found, err := g.lookup(t.Context(), "fat.example")
	if err != nil {
		t.Fatal(err)
	}
	to := net.JoinHostPort(found[0], "7")
	var all sync.WaitGroup
	few := make(chan struct{}, 32)
	for i := range 1000 {
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			conn, err := g.dialAddr(t.Context(), "tcp", to)
			if err != nil {
				t.Error(i, err)
				return
			}
			t.Cleanup(func() { conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
			if i%2 == 0 {
				_, _ = conn.Write([]byte("z"))
				return
			}
			for { // the server reads one byte and no more
				if _, err := conn.Write(append([]byte("n"), make([]byte, 1<<20)...)); err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	time.Sleep(500 * time.Millisecond)
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	has := memory(t, g.process.Pid())
	t.Logf("%.0f MB", has/1e6)
	if has > 400e6 {
		t.Errorf("%.0f MB in use", has/1e6)
	}
	if err := g.End(); err != nil {
		t.Error(err)
	}
	_ = r
}
