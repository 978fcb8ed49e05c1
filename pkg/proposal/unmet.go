// SPDX-License-Identifier: Apache-2.0

package proposal

// An Unmet is a toolchain that is older than a file of the repository asks for, or absent.
type Unmet struct {
	Tool    string `json:"tool"`              // "node", "python", "go", "rust", "ruby" or "java"
	Version string `json:"version,omitempty"` // that commands see; "" if there is none
	File    string `json:"file"`              // relative to the workspace
	Wants   string `json:"wants"`             // as the file says it: a version, or a range of versions
	Least   string `json:"least"`             // the oldest version that Wants accepts: "22", "3.10"
	// Base reports that the base of the pull request asks for more than Version, too, or that
	// the run is not for a pull request. Only then it can be why a command could not run: a
	// pull request must not excuse its failures by what it asks for itself.
	Base bool `json:"base,omitempty"`
}
