// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fumehood/fumehood/internal/gate/policyrepo"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Policy is one layer of policy, which decides beside the others. The zero Policy is refused.
type Policy struct {
	Name string // as shown in messages: the directory, git reference or bundle
	// Role is what the layer may do; each role includes those before it.
	//
	//	restricts   deny, ask and lower limits; the default
	//	opens       also grant hosts and what belongs to them
	//	allows      also allow commands for which the granting layer has no rule
	//	grants      replace the shipped policy, and set the limits that others lower
	Role string
	// Files are the contents of its files by their path in it, with slashes: Rego and data. Any other
	// file is refused: a rule in it would not be one.
	Files map[string][]byte
	// Origin is the layer's origin in the report. It may be empty.
	Origin proposal.PolicyOrigin
}

// PolicyOptions are the requirements for a policy that is read. The zero value reads directories, and
// bundles without a required signature.
type PolicyOptions struct {
	// Keys are files with public keys, of which any one must have signed the policy, which must be
	// a bundle. Scope is the scope of the signature.
	Keys  []string
	Scope string
	// MinimumRevision is the oldest revision that a bundle may have: an integer or an RFC 3339
	// time; "" accepts any.
	MinimumRevision string
	// Repository is a directory of the repository that git: means; "." if empty.
	Repository string
}

// ReadPolicy reads a policy, with the role that restricts. spec is one of
//
//	./policy                                a directory
//	git:REVISION:DIR                        a directory at a commit of a repository on this machine
//	policy.tar.gz                           a bundle; policy.tar.gz@sha256:HEX pins it
//	https://HOST/policy.tar.gz@sha256:HEX   a bundle, pinned by the digest of its file
//	oci://REGISTRY/REPOSITORY@sha256:HEX    a bundle in a registry, pinned by the digest of its manifest
//
// Its rules are checked by New. Its error is a *proposal.StopError.
func ReadPolicy(ctx context.Context, spec string, o PolicyOptions) (Policy, error) {
	if (len(o.Keys) > 0 || o.Scope != "" || o.MinimumRevision != "") && !source.IsBundle(spec) {
		return Policy{}, invalidOptionsError(
			fmt.Sprintf("a signature or a revision is required of the policy %q, which is not a bundle", spec),
			"name a bundle, or remove the requirement")
	}
	if o.Scope != "" && len(o.Keys) == 0 {
		return Policy{}, invalidOptionsError("a scope is given without a key", "set Keys")
	}
	keys, err := source.ReadKeys(o.Keys)
	if err != nil {
		return Policy{}, err
	}
	if err := source.CheckMinimum(o.MinimumRevision); err != nil {
		return Policy{}, err
	}
	l, origin, err := source.Read(ctx, spec,
		source.Options{Keys: keys, Scope: o.Scope, MinimumRevision: o.MinimumRevision,
			Repository: policyrepo.OpenDirectory(o.Repository)})
	if err != nil {
		return Policy{}, err
	}
	return Policy{Name: l.Name, Files: l.Contents(), Origin: origin}, nil
}

// parseRole returns p's role.
func (p Policy) parseRole() (policy.Role, error) {
	role, known := policy.ParseRole(cmp.Or(p.Role, policy.Restricts.String()))
	if !known {
		return role, invalidOptionsError(fmt.Sprintf("invalid role %q of the policy %q", p.Role, p.Name),
			"use restricts, opens, allows or grants")
	}
	return role, nil
}

// toLayer returns p as it is compiled.
func (p Policy) toLayer() (policy.Layer, error) {
	role, err := p.parseRole()
	if err != nil {
		return policy.Layer{}, err
	}
	var files []policy.File
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		if !policy.IsLayerFile(name) {
			return policy.Layer{}, invalidOptionsError(fmt.Sprintf("the policy %q has the file %q, which is neither Rego nor data", p.Name, name),
				"name it data.json, or with .rego, .yaml or .yml at its end, or leave it out")
		}
		content := p.Files[name]
		files = append(files, policy.File{Name: name, Content: slices.Clone(content)}) // the caller may change its own
	}
	l, err := policy.FromFiles(p.Name, files)
	l.Role = role
	return l, err
}

// policyLayers returns o's Policies as they are compiled.
func (o Options) policyLayers() (list []policy.Layer, err error) {
	for _, p := range o.Policies {
		l, err := p.toLayer()
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}
