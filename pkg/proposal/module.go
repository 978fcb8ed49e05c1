// SPDX-License-Identifier: Apache-2.0

package proposal

// A GoModule is a Go module of the workspace. go test names a package by its import path, which
// begins with that of its module, and a file of the package by its bare name. Untrusted text.
type GoModule struct {
	Dir  string `json:"directory"` // relative to the workspace, "." for its top
	Path string `json:"path"`
}
