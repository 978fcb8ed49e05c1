// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What policy was still asked about when the command ended was cut, and not refused.
func TestEndsBeforeTheAnswer(t *testing.T) {
	lanetest.SkipShort(t)
	for _, test := range []struct {
		kind string
		port int
		ends bool
		code string
	}{{points.EgressHello, 443, true, "cut"}, {points.EgressRequest, 80, true, "cut"}, {points.EgressHello, 443, false, "policy"}, {points.EgressRequest, 80, false, "policy"}} {
		t.Run(fmt.Sprint(test.kind, test.ends), func(t *testing.T) {
			w := newWorld(t, test.port, allow)
			var end context.CancelFunc
			w.ctx, end = context.WithCancel(w.ctx)
			defer end()
			w.policy = func(proposal.Egress) proposal.EgressDecision {
				if test.ends {
					end()
				}
				return proposal.EgressDecision{Reason: &proposal.Reason{Rule: "error"}}
			}
			if test.port == 80 {
				w.http(http.HandlerFunc(hello200))
				w.start()
				_ = w.talk("GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
			} else {
				w.https(http.HandlerFunc(hello200))
				w.start()
				if _, err := w.handshake(&tls.Config{ServerName: "allowed.example"}); err == nil {
					t.Error("there is a connection")
				}
			}
			f := w.reported(test.kind, 1)[0]
			if f.Code != test.code || f.Sent != 0 || f.Refused() == test.ends || f.Decision.Effect == proposal.Allow {
				t.Errorf("reported %+v", f)
			}
		})
	}
}
