// SPDX-License-Identifier: Apache-2.0

package proposal

import "time"

// A PolicyOrigin says where one layer of the deciding policy came from, so that a
// reader of a report or a log can find it.
type PolicyOrigin struct {
	Kind string `json:"kind"` // one of the Kind constants of package source
	Spec string `json:"spec"` // as it was specified, without possible credentials or personal paths
	Role string `json:"role"` // "restricts", "opens", "allows" or "grants"
	// Commit is the full ID of the commit from which a git, base or github layer was read.
	Commit string `json:"commit,omitempty"`
	// Digest is "sha256:" and hex: of a bundle's file, of an OCI artifact's manifest,
	// or for any other layer of the names and contents of its files.
	Digest   string `json:"digest"`
	Revision string `json:"revision,omitempty"`  // what the bundle's manifest says
	SignedBy string `json:"signed_by,omitempty"` // the key whose signature was verified; "" for none
	// Copied is when GitHub returned the bundle, if a copy of it was used because GitHub did not answer.
	Copied time.Time `json:"copied,omitzero"`
}
