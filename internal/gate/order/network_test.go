// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// granting is a policy that grants a host to the commands in it.
type granting struct {
	*world
	hosts map[string][]string
}

func (g granting) Decide(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
	d, err := g.world.Decide(ctx, p, a)
	if d.Grant != nil {
		d.Grant.Network = g.hosts[p.ID]
	}
	return d, err
}

// gateway records its calls.
type gateway struct{ *world }

func (g gateway) Open(_ context.Context, granted []string, _ sandbox.Options) (Link, error) {
	return Link{Netns: "gateway"}, g.do("open " + strings.Join(granted, " "))
}

func (g gateway) Begin(_ context.Context, x sandbox.Execution, _ context.CancelCauseFunc) error {
	return g.do("begin " + x.ID + strings.Join(append([]string{""}, x.Grant.Network...), " "))
}

func (g gateway) End() error { return g.do("end") }

func networked(w *world) *Stages {
	h := w.stages()
	h.Policy = granting{w, map[string][]string{"a": {"go.example"}}}
	h.Network = gateway{w}
	return h
}

func both() map[string]proposal.Effect {
	return map[string]proposal.Effect{"a": proposal.Allow, "b": proposal.Allow}
}

func TestNetworkAroundEachCommand(t *testing.T) {
	w := &world{decide: both()}
	if _, err := networked(w).Run(t.Context(), planOf("a", "b"), proposal.Run{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"open go.example", "open sandbox",
		"log start a", "begin a go.example", "run a: text of a", "end", "log result a",
		"log start b", "begin b", "run b: text of b", "end", "log result b",
		"close sandbox", "log end",
	}
	if diff := cmp.Diff(want, w.did[slices.Index(w.did, "open go.example"):]); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A grant of a host without a gateway stops the run, even for a command that has no grant.
func TestNetworkUnavailable(t *testing.T) {
	w := &world{decide: both()}
	h := networked(w)
	h.Network = nil
	report, err := h.Run(t.Context(), planOf("b", "a"), proposal.Run{})
	if report.Error == nil || report.Error.Code != "network.unavailable" || err == nil {
		t.Errorf("error %+v, %v", report.Error, err)
	}
	want := map[string]string{"a": "not run the run stopped: network.unavailable", "b": "not run the run stopped: network.unavailable"}
	if diff := cmp.Diff(want, statuses(report)); diff != "" {
		t.Error(diff)
	}
	for _, what := range w.did {
		if strings.HasPrefix(what, "run ") || strings.HasPrefix(what, "log start") {
			t.Errorf("it did %q", what)
		}
	}
	w = &world{decide: map[string]proposal.Effect{"b": proposal.Allow}} // a is denied
	h = networked(w)
	h.Network = nil
	if _, err := h.Run(t.Context(), planOf("a", "b"), proposal.Run{}); err != nil {
		t.Errorf("a grant that nobody uses: %v", err)
	}
}

// Set-up that a layer replaces was granted a host, and needs no gateway. Another command does.
func TestNetworkOfReplacedSetUp(t *testing.T) {
	for _, host := range []string{"", "go.example"} {
		w := &world{decide: allowed}
		h, hosts := w.stages(), map[string][]string{"s": {"registry:npm"}}
		if host != "" {
			hosts["a"] = []string{host}
		}
		h.Policy, h.Network, h.Layers = granting{w, hosts}, gateway{w}, shelf{world: w, has: &proposal.Layer{Key: "k", Digest: "d", Run: "other"}}
		report, err := h.Run(t.Context(), withSetUp(), proposal.Run{})
		if err != nil || !report.Records[0].Result.FromLayer() || !report.Records[2].Result.Succeeded() {
			t.Fatalf("%+v, %v", report.Records, err)
		}
		opened := slices.DeleteFunc(slices.Clone(w.did), func(call string) bool { return !strings.HasPrefix(call, "open ") || call == "open sandbox" })
		if want := strings.TrimSpace("open " + host); host == "" && len(opened) > 0 || host != "" && !slices.Equal(opened, []string{want}) {
			t.Errorf("%q: %q", host, opened)
		}
	}
}

// Without a grant of a host there is no network, and the gateway is not called.
func TestNetworkNotGranted(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"b": proposal.Allow}} // a is denied
	if _, err := networked(w).Run(t.Context(), planOf("a", "b"), proposal.Run{}); err != nil {
		t.Fatal(err)
	}
	for _, what := range w.did {
		if strings.HasPrefix(what, "open go") || strings.HasPrefix(what, "begin") || what == "end" {
			t.Errorf("it did %q", what)
		}
	}
}

// A gateway that fails ends the run, and a command that it did not accept is not started.
func TestNetworkFails(t *testing.T) {
	stopped := &proposal.StopError{Code: "gateway.gone", Message: "no"}
	for _, test := range []struct {
		fails string
		want  map[string]string
		ended int
	}{
		{"open go.example", map[string]string{"a": "not run the run stopped: gateway.gone", "b": "not run the run stopped: gateway.gone"}, 0},
		{"begin a go.example", map[string]string{"a": "sandbox failed it was not started: the gateway did not accept it", "b": "not run the run stopped: gateway.gone"}, 0},
		{"end", map[string]string{"a": "exited ", "b": "not run the run stopped: gateway.gone"}, 1},
		{"run a: text of a", map[string]string{"a": "exited ", "b": "not run the run stopped: gateway.gone"}, 1},
	} {
		t.Run(test.fails, func(t *testing.T) {
			w := &world{}
			k := &keeper{world: w}
			w.decide, w.fail = both(), map[string]error{test.fails: stopped}
			h := networked(w)
			h.Log, h.Observer = k, observing(k)
			w.results = map[string]proposal.Result{"a": {Status: proposal.Exited, Observations: whole()}}
			report, _ := h.Run(t.Context(), planOf("a", "b"), proposal.Run{})
			if report.Error == nil || report.Error.Code != "gateway.gone" {
				t.Errorf("error %+v", report.Error)
			}
			if diff := cmp.Diff(test.want, statuses(report)); diff != "" {
				t.Error(diff)
			}
			if o := report.Records[0].Result.Observations; test.fails == "end" && (o == nil || o.Complete) {
				t.Errorf("a record without the gateway's end is called complete: %+v", o)
			}
			ran := slices.Contains(w.did, "run a: text of a")
			if ends := count(w.did, "end"); ends != test.ended || ran != (test.ended == 1) {
				t.Errorf("ended %d times, ran %v; did %q", ends, ran, w.did)
			}
			if doubts := CompareLog(report, k.entries); len(doubts) > 0 {
				t.Errorf("doubts: %q", doubts)
			}
		})
	}
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// A run interrupted during the gateway's Begin is reported as interrupted.
func TestNetworkInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{decide: both(), fail: map[string]error{"begin a go.example": context.Canceled}}
	h := networked(w)
	h.Progress = func(Step) { cancel() }
	report, err := h.Run(ctx, planOf("a"), proposal.Run{})
	if proposal.FailureOf(err).Code != "run.cancelled" || statuses(report)["a"] != "sandbox failed the run was interrupted" {
		t.Errorf("%v, %q", err, statuses(report))
	}
}
