// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"

	"github.com/fumehood/fumehood/pkg/policy"
)

// A chosen is the policies that flags name.
type chosen struct {
	granting, organisation, hosts, policies list
}

func (p *chosen) define(f *flag.FlagSet) {
	f.Var(&p.policies, "policy", "folder of Rego that may deny, ask and lower what the default policy allows; may be repeated")
	f.Var(&p.hosts, "hosts", "policy `folder` like --policy, which may also grant hosts to commands; may be repeated")
	f.Var(&p.organisation, "organisation", "policy `folder` like --hosts, which may also allow commands that the default policy does not know; may be repeated")
	f.Var(&p.granting, "granting", "policy `folder` that allows in place of the default policy")
}

// layers reads them, those that may do most first.
func (p *chosen) layers() ([]policy.Layer, error) {
	var layers []policy.Layer
	for _, of := range []struct {
		dirs list
		role policy.Role
	}{{p.granting, policy.Grants}, {p.organisation, policy.Allows}, {p.hosts, policy.Opens}, {p.policies, policy.Restricts}} {
		for _, dir := range of.dirs {
			l, err := policy.Dir(dir)
			if err != nil {
				return nil, err
			}
			l.Role = of.role
			layers = append(layers, l)
		}
	}
	return layers, nil
}

// engine is the judge of them.
func (p *chosen) engine(ctx context.Context, observe bool) (*policy.Engine, error) {
	layers, err := p.layers()
	if err != nil {
		return nil, err
	}
	return policy.New(ctx, policy.Options{Layers: layers, Observe: observe})
}
