// SPDX-License-Identifier: Apache-2.0

package review

import (
	"os"
	"path/filepath"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ReadGuidance reads the guidance in the configuration file name: see config.ReadFile. If name
// is empty, it is the file of the tree in trusted, which must be the base's.
func ReadGuidance(name, trusted string) (Guidance, error) {
	found, err := config.ReadFile(name, trusted)
	return GuidanceOf(found.Config), err
}

// GuidanceOf returns the guidance in c.
func GuidanceOf(c config.Config) Guidance {
	r := c.Review
	return Guidance{Paths: r.Paths, Ignore: r.Ignore, Hide: c.Hide, Focus: r.Focus, Severity: r.Severity,
		Language: r.Language, Keep: r.Transcript}
}

// newTextKeeper returns a function that writes a text to dir if g allows it.
func (g Guidance) newTextKeeper(dir string) func(name, text string) error {
	return func(name, text string) error {
		if !g.Keep {
			return nil
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return &proposal.StopError{Code: "artifacts.not-writable", Message: "cannot keep a text of the review",
				Hint: "free space, or leave out transcript", Err: err}
		}
		return nil
	}
}
