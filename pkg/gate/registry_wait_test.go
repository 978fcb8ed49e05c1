// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A command is ended if none of its registries accepts a connection. One that reaches a registry, asks for none, or
// has ended, is not.
func TestRegistryWait(t *testing.T) {
	t.Parallel()
	ask := func(kind string, registries ...string) proposal.Egress {
		return proposal.Egress{Kind: kind, Name: "registry.example", Registries: registries}
	}
	lookup, connect := ask(points.EgressLookup, "npm"), ask(points.EgressConnect, "npm")
	for name, c := range map[string]struct {
		questions []proposal.Egress
		ends      bool // by itself, before the wait is over
		want      bool
	}{
		"no answer":            {[]proposal.Egress{lookup, connect, lookup}, false, true},
		"a connection alone":   {[]proposal.Egress{connect}, false, true},
		"a request":            {[]proposal.Egress{lookup, connect, ask(points.EgressRequest, "npm")}, false, false},
		"a connection's hello": {[]proposal.Egress{lookup, connect, ask(points.EgressHello, "npm"), lookup}, false, false},
		"another host":         {[]proposal.Egress{ask(points.EgressLookup), ask(points.EgressConnect)}, false, false},
		"it answers later":     {[]proposal.Egress{ask(points.EgressRequest, "npm"), lookup}, false, false},
		"the command's end":    {[]proposal.Egress{lookup}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := registryWait{patience: 100 * time.Millisecond}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			var notes sandbox.Notes
			said := make(chan string, 2)
			notes.Show(func(line string) { said <- line })
			w.beginCommand(&notes, stop)
			for _, x := range c.questions {
				w.noteQuestion(x)
			}
			if c.ends {
				w.endWait()
				w.beginCommand(&notes, stop)
			}
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			var why *proposal.StopError
			if got := errors.As(context.Cause(ctx), &why); got != c.want || len(said) > 0 != c.want {
				t.Fatalf("ended: %v, %d lines", got, len(said))
			}
			if c.want && (!strings.Contains(why.Message, "npm: registry.example") || sandbox.KilledBy(why) != proposal.KilledRegistry) {
				t.Errorf("%v", why)
			}
		})
	}
}
