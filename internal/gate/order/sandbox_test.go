// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// linked is a gateway with a link.
type linked struct {
	gateway
	link Link
}

func (l linked) Open(ctx context.Context, granted []string, o sandbox.Options) (Link, error) {
	_, err := l.gateway.Open(ctx, granted, o)
	return l.link, err
}

// The sandbox has what was known before the run, and what the run adds. What runs share is not
// changed.
func TestCompleteOptions(t *testing.T) {
	w := &world{decide: both()}
	h := networked(w)
	h.Network = linked{gateway{w}, Link{Netns: "/netns", Env: map[string]string{"A": "link", "GOPROXY": "link"}, Unset: []string{"GOPROXY"},
		Files: map[string][]byte{"/f": nil}, Home: map[string]string{"h": ""}, Binds: []sandbox.Bind{{Target: "/b"}}}}
	env, binds := map[string]string{"A": "gate", "B": "gate"}, make([]sandbox.Bind, 1, 2)
	h.Sandbox = sandbox.Options{Env: maps.Clone(env), Binds: binds, Files: map[string][]byte{"/own": nil}}
	h.Unread = "/unread"
	start, got := h.Start, sandbox.Options{}
	h.Start = func(o sandbox.Options) (Runner, error) { got = o; return start(o) }
	if _, err := h.Run(t.Context(), planOf("a", "b"), proposal.Run{}); err != nil {
		t.Fatal(err)
	}
	if got.Netns != "/netns" || got.Artifacts != "/unread" || got.Layer != nil || got.Recorded || got.Limits.Wall == 0 || got.Exec == nil || got.Event == nil {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(map[string]string{"A": "link", "B": "gate"}, got.Env); diff != "" {
		t.Error(diff)
	}
	if len(got.Binds) != 2 || len(got.Files) != 2 || len(got.Home) != 1 {
		t.Errorf("%+v", got)
	}
	if !maps.Equal(h.Sandbox.Env, env) || len(h.Sandbox.Files) != 1 || h.Sandbox.Home != nil || !slices.Equal(binds[:2], make([]sandbox.Bind, 2)) {
		t.Errorf("the options of all runs changed: %+v", h.Sandbox)
	}
}

// Without a grant of a host the sandbox has no network, whatever the gateway would give.
func TestNoLink(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"b": proposal.Allow}}
	h := networked(w)
	start, got := h.Start, sandbox.Options{}
	h.Start = func(o sandbox.Options) (Runner, error) { got = o; return start(o) }
	if _, err := h.Run(t.Context(), planOf("a", "b"), proposal.Run{}); err != nil || got.Netns != "" {
		t.Errorf("%q, %v", got.Netns, err)
	}
}

// A command that is not running starts no program: its end, or a failure to decide, refuses it.
func TestExecAfterEnd(t *testing.T) {
	w := &world{decide: map[string]proposal.Effect{"a": proposal.Allow}}
	h := w.stages()
	h.Lineage.Exec = func(context.Context, proposal.Exec) (proposal.ExecDecision, error) {
		return proposal.ExecDecision{}, &proposal.StopError{Code: "policy.deadline", Message: "no answer"}
	}
	start, got := h.Start, sandbox.Options{}
	h.Start = func(o sandbox.Options) (Runner, error) { got = o; return start(o) }
	if _, err := h.Run(t.Context(), planOf("a"), proposal.Run{}); err != nil {
		t.Fatal(err)
	}
	if d := got.Exec(proposal.Exec{Command: "a", Path: "/usr/bin/true", Argv: []string{"true"}}); d.Effect != proposal.Deny || d.Reason == nil {
		t.Errorf("%+v", d)
	}
}

// The sandbox of the base has the base's workspace and is none that waited. It gets a network of its
// own if its commands were granted one, after that of the pull request's code has ended; else it has
// the same one, and each command is between Begin and End.
func TestBaseNetwork(t *testing.T) {
	for name, granted := range map[string][]string{"granted": {"go.example"}, "not granted": nil} {
		w, base, h, _ := based(map[string]proposal.Result{"a": printing(1, "old\n"), "a~base": printing(1, "old\n")})
		h.Checker.Policy = granting{w, map[string][]string{"a": {"go.example"}, "a~base": granted}}
		h.Network, h.Sandbox.Pool = gateway{w}, sandbox.NewPool(0)
		var got []sandbox.Options
		h.Start = func(o sandbox.Options) (Runner, error) {
			got = append(got, o)
			return base.start(o)
		}
		if _, err := h.Run(t.Context(), planOf("a"), proposal.Run{ID: "1"}); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Pool == nil || got[1].Pool != nil || got[1].Workspace != "base" || got[1].Netns != "gateway" {
			t.Fatalf("%s: %+v", name, got)
		}
		first, second := slices.Index(w.did, "close sandbox"), slices.Index(w.did, "open base's sandbox")
		opened := slices.Contains(w.did[first:second], "open go.example")
		if opened != (granted != nil) || count(w.did, "end") != 2 {
			t.Errorf("%s: did %q", name, w.did)
		}
	}
}
