// SPDX-License-Identifier: Apache-2.0

//go:build linux

package review

import "github.com/fumehood/fumehood/pkg/gate"

// ReadGuidance reads the guidance in the configuration file name: see gate.ReadConfig. If name
// is empty, it is the file of the tree in trusted, which must be the base's.
func ReadGuidance(name, trusted string) (Guidance, error) {
	found, err := gate.ReadConfig(name, trusted)
	r := found.Config.Review
	return Guidance{Paths: r.Paths, Ignore: r.Ignore, Focus: r.Focus, Severity: r.Severity, Language: r.Language, Keep: r.Transcript}, err
}
