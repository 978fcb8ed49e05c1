// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/policy"
	policysource "github.com/fumehood/fumehood/pkg/policy/source"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A place is one layer of a job's policy: as it was read, and the folder of our own that
// it was written to for the run, which has neither network nor key.
type place struct {
	layer  policy.Layer
	folder string
	origin policysource.Origin
}

// organisation reads the bundle that the workflow names, once. It is nil where none is
// named. Nothing of the pull request says where it is or who must have signed it.
func (j *job) organisation() (*place, error) {
	switch {
	case j.in.Organisation == "" && j.in.PolicyKey+j.in.MinimumRevision != "":
		return nil, &proposal.StopError{Code: "input.organisation", Message: "the inputs policy-key and minimum-revision are about the organisation's bundle, and there is none",
			Hint: "with:\n  organisation: https://policy.example/policy.tar.gz@sha256:…"}
	case j.in.Organisation == "" || j.org != nil:
		return j.org, nil
	}
	options := policysource.Options{MinimumRevision: j.in.MinimumRevision}
	if j.in.PolicyKey != "" {
		file := filepath.Join(j.dir, "policy-key.pem")
		if err := os.WriteFile(file, []byte(j.in.PolicyKey+"\n"), 0o600); err != nil {
			return nil, organisationError(err)
		}
		var err error
		if options.Key, err = policysource.ReadKey(file); err != nil {
			return nil, err
		}
	}
	l, origin, err := policysource.Read(j.Ctx, j.in.Organisation, options)
	if err != nil {
		return nil, err
	}
	l.Role, origin.Role = policy.Allows, policy.Allows.String()
	p := &place{layer: l, folder: filepath.Join(j.dir, "organisation"), origin: origin}
	if err := p.write(); err != nil {
		return nil, organisationError(err)
	}
	j.org = p
	return p, nil
}

func organisationError(err error) error {
	return &proposal.StopError{Code: "policy.write", Message: "cannot keep the organisation's policy for the run", Hint: "is there room in RUNNER_TEMP?", Err: err}
}

// write writes what decides. Names are those that a bundle may have, and the root lets
// none leave the folder.
func (p *place) write() error {
	if err := os.Mkdir(p.folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range p.layer.Files {
		if !f.Decides() {
			continue
		}
		err := errors.Join(root.MkdirAll(filepath.Dir(f.Name), 0o755), root.WriteFile(f.Name, f.Content, 0o644))
		if err != nil {
			return err
		}
	}
	return nil
}

// layers are the job's policies, but for the shipped one, in the order in which run has
// them.
func (j *job) layers() ([]place, error) {
	var all []place
	org, err := j.organisation()
	if err != nil {
		return nil, err
	}
	if org != nil {
		all = append(all, *org)
	}
	if j.source == nil || j.source.policy == "" {
		return all, nil
	}
	p := place{folder: j.source.policy, origin: policysource.Origin{Kind: policysource.KindBase, Spec: "base:" + j.policyFolder(), Commit: j.request.Base}}
	if p.layer, err = policy.Dir(j.source.policy); err != nil {
		return nil, err
	}
	if j.in.Network == action.NetworkPolicy {
		p.layer.Role = policy.Opens
	}
	p.origin.Role, p.origin.Digest = p.layer.Role.String(), p.layer.Digest()
	return append(all, p), nil
}

// origins are where the engine's layers come from, the shipped one first.
func (j *job) origins() ([]policysource.Origin, error) {
	shipped, err := policysource.Shipped()
	if err != nil {
		return nil, err
	}
	layers, err := j.layers()
	origins := []policysource.Origin{shipped}
	for _, l := range layers {
		origins = append(origins, l.origin)
	}
	return origins, err
}

// policyArgs name the folders for the run, and where each came from.
func (j *job) policyArgs() ([]string, map[string]policysource.Origin, error) {
	layers, err := j.layers()
	if err != nil {
		return nil, nil, err
	}
	var args []string
	origins := map[string]policysource.Origin{}
	for _, l := range layers {
		flag, ok := map[policy.Role]string{policy.Allows: "--organisation", policy.Opens: "--hosts", policy.Restricts: "--policy"}[l.layer.Role]
		if !ok {
			return nil, nil, fmt.Errorf("no flag for a layer that %s", l.layer.Role)
		}
		args, origins[l.folder] = append(args, flag, l.folder), l.origin
	}
	return args, origins, nil
}
