// SPDX-License-Identifier: Apache-2.0

package points

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An ExecKey is everything that a reusable answer about an Exec may depend on. Each field is
// the field of Exec with its name; a test ensures that every other field of Exec is known to
// be beyond the key.
type ExecKey struct {
	Command string
	Path    string
	Asked   string
	Loaded  bool
	Env     []string
	Digest  string
	ELF     *proposal.ELF
	Layer   string
	Same    []string
	Grants  []string
}

// KeyOf returns the key of x.
func KeyOf(x proposal.Exec) ExecKey {
	return ExecKey{Command: x.Command, Path: x.Path, Asked: x.Asked, Loaded: x.Loaded, Env: x.Env, Digest: x.Digest,
		ELF:   x.ELF,
		Layer: x.Layer, Same: x.Same, Grants: x.Grants}
}

// String encodes k: keys are equal if their strings are.
func (k ExecKey) String() string {
	b, err := json.Marshal(k)
	if err != nil {
		panic("points: internal error: an ExecKey cannot be encoded: " + err.Error())
	}
	return string(b)
}
