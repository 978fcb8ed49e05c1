// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"os"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/process"
	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
)

// policyFlags are the policies that flags name.
type policyFlags struct{ gate.Sources }

func (p *policyFlags) define(f *flag.FlagSet) {
	p.Base = func() (string, error) { return action.BaseCommit(os.Getenv) }
	f.Var((*cli.List)(&p.Restricting), "policy", "Rego that may deny, ask and lower what the default policy allows: a `folder`, git:REV:FOLDER, base:FOLDER (a pull request's base, in CI), a bundle FILE.tar.gz, https://…@sha256:… or oci://…@sha256:…; may be repeated")
	f.Var((*cli.List)(&p.Hosts), "hosts", "policy `folder` (or bundle …) like --policy, which may also grant hosts to commands; may be repeated")
	f.Var((*cli.List)(&p.Organisation), "organisation", "policy `folder` (or bundle …) like --hosts, which may also allow commands that the default policy does not know; may be repeated")
	f.Var((*cli.List)(&p.Granting), "granting", "policy `folder` (or bundle …) that allows in place of the default policy")
	f.StringVar(&p.Key, "policy-key", "", "PEM `file` with the public key that must have signed every policy that is a bundle (or hs256:FILE, a shared secret)")
	f.StringVar(&p.Scope, "policy-scope", "", "`scope` that those signatures must have")
	f.StringVar(&p.MinimumRevision, "minimum-revision", "", "oldest `revision` that a bundle may have: an integer or an RFC 3339 time")
}

// layers reads the policies.
func (p *policyFlags) layers(ctx context.Context) ([]policy.Layer, error) {
	list, err := p.Read(ctx)
	return gate.Layers(list), err
}

// engine decides by them.
func (p *policyFlags) engine(ctx context.Context) (*policy.Engine, error) {
	layers, err := p.layers(ctx)
	if err != nil {
		return nil, err
	}
	return newEngine(ctx, policy.Options{Layers: layers})
}

// newEngine is policy.New with less garbage collection.
func newEngine(ctx context.Context, o policy.Options) (*policy.Engine, error) {
	defer process.CollectLess()()
	return policy.New(ctx, o)
}

// newGate is gate.New with less garbage collection.
func newGate(ctx context.Context, o gate.Options) (*gate.Gate, error) {
	defer process.CollectLess()()
	return gate.New(ctx, o)
}
