// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// masks are the values of the input mask.
func (j *job) masks() []outlet.Mask {
	masks := []outlet.Mask{}
	for _, m := range j.in.Mask {
		masks = append(masks, outlet.Mask(m))
	}
	return masks
}

// mask has the runner and all that we tell know what must not be told.
func (j *job) mask() error {
	for _, m := range j.in.Mask {
		if err := j.console.Mask(m.Value); err != nil {
			return err
		}
	}
	var err error
	j.outlet, err = outlet.New(outlet.Options{Masks: j.masks()})
	return err
}

// handMasks is what the process that runs the commands is told to mask: on its standard
// input, which nobody else reads. It is told of no token of ours.
func (j *job) handMasks() ([]byte, error) { return json.Marshal(j.masks()) }

// keepPlan leaves the plan in the artifact, without secrets: where it held one it is not
// the plan any more that was decided, which the report says.
func (l leg) keepPlan(u *outlet.Outlet) error {
	return os.WriteFile(filepath.Join(l.dir, planName), []byte(u.Text(string(l.document))), 0o600)
}

// heldSecrets says that a report's plan is not there as it was decided.
func heldSecrets(r proposal.Report) bool {
	for _, rec := range r.Records {
		if len(rec.Redacted) > 0 {
			return true
		}
	}
	return false
}
