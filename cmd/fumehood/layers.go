// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/checkout"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	policysource "github.com/fumehood/fumehood/pkg/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A chosen is the policies that flags name.
type chosen struct {
	granting, organisation, hosts, policies list
	key, minimum, scope                     string

	near    string                // a folder of the repository that git: and base: mean; "" for the current one
	origins []policysource.Origin // of what was read
	named   []string              // what each was named, "" for the shipped one
}

func (p *chosen) define(f *flag.FlagSet) {
	f.Var(&p.policies, "policy", "Rego that may deny, ask and lower what the default policy allows: a `folder`, git:REV:FOLDER, base:FOLDER (a pull request's base, in CI), a bundle FILE.tar.gz, https://…@sha256:… or oci://…@sha256:…; may be repeated")
	f.Var(&p.hosts, "hosts", "policy `folder` (or bundle …) like --policy, which may also grant hosts to commands; may be repeated")
	f.Var(&p.organisation, "organisation", "policy `folder` (or bundle …) like --hosts, which may also allow commands that the default policy does not know; may be repeated")
	f.Var(&p.granting, "granting", "policy `folder` (or bundle …) that allows in place of the default policy")
	f.StringVar(&p.key, "policy-key", "", "PEM `file` with the public key that must have signed every policy that is a bundle (or hs256:FILE, a shared secret)")
	f.StringVar(&p.scope, "policy-scope", "", "`scope` that those signatures must have")
	f.StringVar(&p.minimum, "minimum-revision", "", "oldest `revision` that a bundle may have: an integer or an RFC 3339 time")
}

// read reads them, those that may do most first, and keeps where they came from.
func (p *chosen) read(ctx context.Context) ([]policy.Layer, error) {
	o, err := p.options()
	if err != nil {
		return nil, err
	}
	p.origins, p.named = nil, nil
	if len(p.granting) == 0 {
		shipped, err := policysource.Shipped()
		if err != nil {
			return nil, err
		}
		p.origins, p.named = append(p.origins, shipped), append(p.named, "")
	}
	var layers []policy.Layer
	for _, of := range []struct {
		specs list
		role  policy.Role
	}{{p.granting, policy.Grants}, {p.organisation, policy.Allows}, {p.hosts, policy.Opens}, {p.policies, policy.Restricts}} {
		for _, spec := range of.specs {
			l, origin, err := policysource.Read(ctx, spec, o)
			if err != nil {
				return nil, err
			}
			l.Role, origin.Role = of.role, of.role.String()
			layers, p.origins, p.named = append(layers, l), append(p.origins, origin), append(p.named, spec)
		}
	}
	return layers, nil
}

// engine is the judge of them.
func (p *chosen) engine(ctx context.Context, observe bool) (*policy.Engine, error) {
	layers, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	return newEngine(ctx, policy.Options{Layers: layers, Observe: observe})
}

// gate is them for a gate; origins replaces where those came from that were named so.
func (p *chosen) gate(ctx context.Context, origins map[string]policysource.Origin) ([]gate.Policy, error) {
	layers, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	var list []gate.Policy
	shipped := len(p.origins) - len(layers) // the shipped policy is the first origin and has no layer here
	for i, l := range layers {
		origin := p.origins[shipped+i]
		if known, ok := origins[p.named[shipped+i]]; ok {
			known.Role, origin = origin.Role, known
		}
		list = append(list, gate.Policy{Layer: l, Origin: origin})
	}
	return list, nil
}

// newEngine is policy.New with less garbage collection.
func newEngine(ctx context.Context, o policy.Options) (*policy.Engine, error) {
	defer collectLess()()
	return policy.New(ctx, o)
}

// newGate is gate.New with less garbage collection.
func newGate(ctx context.Context, o gate.Options) (*gate.Gate, error) {
	defer collectLess()()
	return gate.New(ctx, o)
}

// collectLess collects garbage only above 128 MiB until the function that it returns is
// called. Compiling the policy makes 40 MiB of garbage, and collecting it took a fifth of
// the time.
func collectLess() (restore func()) {
	limit, percent := debug.SetMemoryLimit(128<<20), debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }
}

// options reads the key. What is asked of bundles where there is none would look as if
// it held of the folders.
func (p *chosen) options() (policysource.Options, error) {
	o := policysource.Options{Scope: p.scope, MinimumRevision: p.minimum, Repository: openLocal(p.near), Base: baseCommit}
	bundles := slices.ContainsFunc(slices.Concat(p.granting, p.organisation, p.hosts, p.policies), policysource.IsBundle)
	switch {
	case p.scope != "" && p.key == "":
		return o, &proposal.StopError{Code: policysource.CodeKey, Message: "a scope is given, and no key that signed for it", Hint: "add --policy-key"}
	case p.key+p.minimum != "" && !bundles:
		return o, &proposal.StopError{Code: policysource.CodeSource, Message: "a key or a minimum revision is given, and no policy is a bundle: folders are not signed",
			Hint: "name a bundle (FILE.tar.gz, https://… or oci://…), or leave --policy-key and --minimum-revision out"}
	case p.key == "":
		return o, policysource.CheckMinimum(p.minimum)
	}
	var err error
	o.Key, err = policysource.ReadKey(p.key)
	return o, errors.Join(err, policysource.CheckMinimum(p.minimum))
}

// A localRepository is the one that folder is in.
type localRepository struct{ *checkout.Local }

func openLocal(folder string) func(context.Context) (policysource.Repository, error) {
	if folder == "" {
		folder = "."
	}
	return func(ctx context.Context) (policysource.Repository, error) {
		l, err := checkout.OpenLocal(ctx, folder)
		if err != nil {
			return nil, err
		}
		return localRepository{l}, nil
	}
}

func (r localRepository) Folder(ctx context.Context, commit, path string, wanted func(string) bool) ([]policy.File, []string, error) {
	contents, left, err := r.Local.Folder(ctx, commit, path, wanted, checkout.Limits{Files: 10_000, File: policy.MaxTotal, Bytes: policy.MaxTotal})
	var absent *checkout.NotFound
	if errors.As(err, &absent) {
		err = &proposal.StopError{Code: "policy.missing", Message: fmt.Sprintf("commit %.12s has no folder %q", commit, path),
			Hint: "is it spelt as in the repository, from its top? What a pull request adds is there once it is merged"}
	}
	var files []policy.File
	for _, c := range contents {
		files = append(files, policy.File{Name: c.Path, Content: c.Bytes})
	}
	var unfit []string
	for _, l := range left {
		unfit = append(unfit, l.String())
	}
	return files, unfit, err
}

// baseCommit is the base of the pull request whose event started this job. Nothing of the
// pull request's own text is asked.
func baseCommit() (string, error) {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return "", noBase("base: is a pull request's base, which only a job of GitHub Actions knows")
	}
	runner, err := action.ReadRunner(os.Getenv)
	if err != nil {
		return "", err
	}
	event, err := action.LoadEvent(runner)
	if err != nil {
		return "", err
	}
	if event.PR == nil || event.PR.Base.SHA == "" {
		return "", noBase(fmt.Sprintf("base: the event %s names no base commit", runner.EventName))
	}
	return event.PR.Base.SHA, nil
}

func noBase(message string) error {
	return &proposal.StopError{Code: policysource.CodeSource, Message: message, Hint: "name a commit or a branch: git:origin/main:FOLDER"}
}
