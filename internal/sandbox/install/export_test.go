// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"testing"
)

// Forget forgets what this process has verified, as another does not know it.
func Forget() { checked.Clear() }

// BuildBy makes f fill the cache until the end of the test.
func BuildBy(t *testing.T, f func(dir string) error) {
	t.Cleanup(func() { makeInstallation = buildInstallation })
	makeInstallation = func(_ context.Context, _, _, dir, _ string, _ []string, progress func(string)) error {
		progress("building by a test")
		return f(dir)
	}
}
