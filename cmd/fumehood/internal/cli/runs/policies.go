// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/author/manual"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Policies are the policies that flags name.
type Policies struct {
	settings.Sources
	context string // file of --context
}

const policyTitle = "Policy flags"

// Define adds the flags.
func (p *Policies) Define(cmd *cobra.Command) {
	p.Base = func() (string, error) { return action.BaseCommit(os.Getenv) }
	cli.DefineGroup(cmd, policyTitle, func(f *pflag.FlagSet) {
		f.Var((*cli.List)(&p.Restricting), "policy",
			"`SOURCE` policy that may deny commands, require approval and lower limits: a directory, git:REV:DIR, base:DIR (the base of the pull request, in CI), or a bundle: FILE.tar.gz, https://…@sha256:… or oci://…@sha256:…; may be repeated")
		f.Var((*cli.List)(&p.Hosts), "hosts", "`SOURCE` policy that may also grant hosts to commands; may be repeated")
		f.Var((*cli.List)(&p.Organisation), "organization",
			"`SOURCE` policy that may also grant hosts, and allow commands that the default policy does not know; may be repeated")
		f.Var((*cli.List)(&p.Granting), "granting", "`SOURCE` policy that replaces the default policy")
		f.Var((*cli.List)(&p.Keys), "policy-key",
			"`FILE` public key that must have signed every bundle, PEM, or hs256:FILE with a shared secret; of several, in one file or repeated, any one")
		f.StringVar(&p.Scope, "policy-scope", "", "`SCOPE` scope that the signatures of bundles must have")
		f.StringVar(&p.MinimumRevision, "minimum-revision", "",
			"`REVISION` oldest revision that a bundle may have: an integer or an RFC 3339 time")
	})
	cli.NoFiles(cmd, "policy-scope", "minimum-revision")
}

// DefineContext adds the flag that says what rules get as input.context, to the flags with
// this title; "" is those of policies.
func (p *Policies) DefineContext(cmd *cobra.Command, title string) {
	cli.DefineGroup(cmd, cmp.Or(title, policyTitle), func(f *pflag.FlagSet) {
		f.StringVar(&p.context, "context", "",
			"`FILE` what rules get as input.context: JSON, such as {\"repository\": \"acme/shop\", \"labels\": [\"trusted\"]}")
	})
}

// maxContext bounds the file of --context, in bytes.
const maxContext = 16 << 20

// ReadContext returns what --context says, if it was given.
func (p *Policies) ReadContext() (c proposal.Context, given bool, err error) {
	if p.context == "" {
		return c, false, nil
	}
	f, err := os.Open(p.context)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxContext+1)); err == nil && len(data) > maxContext {
			err = fmt.Errorf("it is larger than %d bytes", maxContext)
		}
		if err == nil {
			c, err = points.ReadContext(data)
		}
	}
	if err != nil {
		return c, true, &proposal.StopError{Code: "policy.context",
			Message: fmt.Sprintf("cannot read the context %q", p.context),
			Hint:    "write a JSON object with fields of docs/INPUTS.md, section input.context", Err: err}
	}
	return c, true, nil
}

// ReadLayers reads the policies.
func (p *Policies) ReadLayers(ctx context.Context) ([]policy.Layer, error) {
	list, err := p.Read(ctx)
	return settings.LayersOf(list), err
}

// ReadRules returns the rules of the policies, with what their METADATA says.
func (p *Policies) ReadRules(ctx context.Context) ([]manual.Rule, error) {
	layers, err := p.ReadLayers(ctx)
	if err != nil {
		return nil, err
	}
	return manual.ListRules(layers...)
}

// NewEngine returns an engine that decides by the policies.
func (p *Policies) NewEngine(ctx context.Context) (*policy.Engine, error) {
	about, _, err := p.ReadContext()
	if err != nil {
		return nil, err
	}
	layers, err := p.ReadLayers(ctx)
	if err != nil {
		return nil, err
	}
	return NewEngine(ctx, policy.Options{Layers: layers, Context: about})
}

// NewEngine is policy.New with less garbage collection.
func NewEngine(ctx context.Context, o policy.Options) (*policy.Engine, error) {
	defer process.CollectLess()()
	return policy.New(ctx, o)
}

// NewGate is gate.New with less garbage collection.
func NewGate(ctx context.Context, o gate.Options) (*gate.Gate, error) {
	defer process.CollectLess()()
	return gate.New(ctx, o)
}
