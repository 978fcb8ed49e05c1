// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/egress/netns/netnstest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
)

// unreads is the number of connections that a test opens and does not read.
func unreads(t *testing.T) int { return min(unreadConnections, sample.Rounds(t, 1000, 80, 10)) }

// maxUnread is the maximum memory the process may use with n of them.
func maxUnread(n int) float64 { return 160e6 + unreadEach*float64(n) }

// settled waits until the process's memory stops growing and returns the peak.
func settled(t *testing.T, g *Gateway) (peak float64) {
	for quiet := 0; quiet < 10 && g.Err() == nil; quiet++ {
		if now := memory(t, g.process.Pid()); now > peak {
			peak, quiet = now, 0
		}
		time.Sleep(100 * time.Millisecond)
	}
	return peak
}

// The gateway bounds what it buffers for unread connections: half of them carry endless
// data from the server, half from the program.
func TestUnread(t *testing.T) {
	lanetest.SkipShort(t)
	t.Parallel()
	n := unreads(t)
	_, g, _ := open(t, nil)
	found, err := g.lookup(t.Context(), "fat.example")
	if err != nil {
		t.Fatal(err)
	}
	to := net.JoinHostPort(found[0], "7")
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			err := netnstest.RunInNamespace(g.inside(), func() error {
				for i := worker; i < n; i += 32 {
					if err := unread(t, to, i%2 == 0); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	has := settled(t, g)
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f MB", has/1e6)
	if has > maxUnread(n) {
		t.Errorf("%.0f MB in use", has/1e6)
	}
	if err := g.End(); err != nil {
		t.Error(err)
	}
}

// unread opens a connection on which one side sends and the other does not read: with
// server, the server sends.
func unread(t *testing.T, to string, server bool) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	t.Cleanup(func() { conn.Close() })
	if server {
		_, err := conn.Write([]byte("z"))
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	for { // the server reads one byte and no more
		if _, err := conn.Write(append([]byte("n"), make([]byte, 1<<20)...)); err != nil {
			return nil
		}
	}
}
