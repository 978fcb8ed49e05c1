// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A checking session decides by the real policy, and runs nothing.
type checking struct {
	fake
	gate *gate.Gate
	last *proposal.Record
}

// A checkingGate opens one.
type checkingGate struct {
	world
	session checking
}

func (g *checkingGate) Open(context.Context, gate.SessionOptions) (gate.Session, error) {
	return g.session, nil
}

func (c checking) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	list, err := c.gate.Check(ctx, proposal.Plan{Proposals: []proposal.Proposal{p}})
	if err != nil {
		return proposal.Record{}, err
	}
	*c.last = list[0]
	list[0].Result = &proposal.Result{Status: proposal.Exited}
	return list[0], nil
}

func (c checking) Start(ctx context.Context, p proposal.Proposal) (gate.Process, error) {
	j := &job{done: make(chan struct{})}
	j.r, j.err = c.Do(ctx, p)
	close(j.done)
	return j, nil
}

// Every text of the corpus has the same decision by the SDK's wire as in a plan, as a command
// and as bash code.
func TestCorpus(t *testing.T) {
	g, err := gate.New(t.Context(), gate.Options{DecideOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var last proposal.Record
	d := newDesk(t, Options{Gate: func(context.Context, string) (gate.Opener, error) {
		return &checkingGate{session: checking{fake: fake{world: newWorld()}, gate: g, last: &last}}, nil
	}})
	m := d.create(key, `{}`)
	decided := func(p proposal.Proposal) proposal.Decision {
		p.ID = "c"
		list, err := g.Check(t.Context(), proposal.Plan{Proposals: []proposal.Proposal{p}})
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Decision
	}
	for _, name := range []string{"benign", "hostile"} {
		for _, text := range sample.EveryNth(t, sample.ReadCorpus(t, "../../../testdata/corpus/"+name+".txt"), 70, 400) {
			command, _ := json.Marshal(map[string]any{"process": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", text}}})
			d.call("POST", "/process.Process/Start", framed(string(command)), with(m.envd(), "Content-Type", "application/connect+json"))
			if diff := cmp.Diff(decided(proposal.Proposal{Run: text}), last.Decision); diff != "" {
				t.Errorf("%q: -plan +SDK:\n%s", text, diff)
			}
			code, _ := json.Marshal(map[string]any{"code": text, "language": "bash"})
			d.call("POST", "/execute", string(code), m.code())
			if diff := cmp.Diff(decided(proposal.Proposal{Code: text, Language: "bash"}), last.Decision); diff != "" {
				t.Errorf("%q as code: -plan +SDK:\n%s", text, diff)
			}
		}
	}
}
