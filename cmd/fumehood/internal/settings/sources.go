// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"errors"
	"slices"

	"github.com/fumehood/fumehood/internal/gate/policyrepo"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Sources name policies by role. See package source for the syntax of a name.
type Sources struct {
	Granting, Organisation, Hosts, Restricting []string
	// Keys are the files with the keys of which any one must have signed every bundle. Scope is
	// the scope of those signatures, and MinimumRevision the oldest accepted revision of a bundle.
	Keys                   []string
	Scope, MinimumRevision string
	// Directory is in the repository that git: and base: mean; "." if empty.
	Directory string
	// Base returns the commit that base: means; nil if base: has no meaning.
	Base func() (string, error)
	// Origins replace the reported origins of policies, by name.
	Origins map[string]proposal.PolicyOrigin
}

// A Policy is a layer of policy, and where it is from.
type Policy struct {
	policy.Layer
	Origin proposal.PolicyOrigin
}

// ForGate returns policies as options of a gate.
func ForGate(policies []Policy) (list []gate.Policy) {
	for _, p := range policies {
		list = append(list, gate.Policy{Name: p.Name, Role: p.Role.String(), Files: p.Contents(), Origin: p.Origin})
	}
	return list
}

// LayersOf returns policies without their origins.
func LayersOf(policies []Policy) (layers []policy.Layer) {
	for _, p := range policies {
		layers = append(layers, p.Layer)
	}
	return layers
}

// Read reads the policies, the most powerful roles first. Its error is a
// *proposal.StopError.
func (s Sources) Read(ctx context.Context) ([]Policy, error) {
	o, err := s.sourceOptions()
	if err != nil {
		return nil, err
	}
	var list []Policy
	for _, of := range []struct {
		names []string
		role  policy.Role
	}{{s.Granting, policy.Grants}, {s.Organisation, policy.Allows}, {s.Hosts, policy.Opens},
		{s.Restricting, policy.Restricts}} {
		for _, name := range of.names {
			l, origin, err := source.Read(ctx, name, o)
			if err != nil {
				return nil, err
			}
			if known, ok := s.Origins[name]; ok {
				origin = known
			}
			l.Role, origin.Role = of.role, of.role.String()
			list = append(list, Policy{Layer: l, Origin: origin})
		}
	}
	return list, nil
}

// sourceOptions reads the keys. Options for bundles without a bundle are refused, because they
// would seem to apply to directories.
func (s Sources) sourceOptions() (source.Options, error) {
	o := source.Options{Scope: s.Scope, MinimumRevision: s.MinimumRevision,
		Repository: policyrepo.OpenDirectory(s.Directory),
		Base:       s.Base}
	bundles := slices.ContainsFunc(slices.Concat(s.Granting, s.Organisation, s.Hosts, s.Restricting), source.IsBundle)
	switch {
	case s.Scope != "" && len(s.Keys) == 0:
		return o, &proposal.StopError{Code: source.CodeKey, Message: "a scope is given without a key",
			Hint: "add --policy-key"}
	case (len(s.Keys) > 0 || s.MinimumRevision != "") && !bundles:
		return o, &proposal.StopError{Code: source.CodeSource,
			Message: "a key or a minimum revision is given, but no policy is a bundle: directories are not signed",
			Hint:    "name a bundle (FILE.tar.gz, https://… or oci://…), or remove --policy-key and --minimum-revision"}
	}
	var err error
	o.Keys, err = source.ReadKeys(s.Keys)
	return o, errors.Join(err, source.CheckMinimum(s.MinimumRevision))
}

// ReadTested returns the layers that a test of policies is about, and those that decide beside
// them: the directories, read with s's key, and the shipped policy if shipped is set, beside
// s's own policies; without either of them s's own policies alone.
func (s Sources) ReadTested(
	ctx context.Context, directories []string, shipped bool,
) (tried, beside []policy.Layer, err error) {
	own, err := s.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.Granting, s.Organisation, s.Hosts, s.Restricting = nil, nil, nil, directories
	list, err := s.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	tried = LayersOf(list)
	if shipped {
		l, err := policy.ShippedLayer()
		return append(tried, l), LayersOf(own), err
	}
	if len(tried) == 0 {
		return LayersOf(own), nil, nil
	}
	return tried, LayersOf(own), nil
}
