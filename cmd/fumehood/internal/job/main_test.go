// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.RunMain(m) }

// A world has what only tests of this package do with it.
type world struct{ *jobtest.World }

func newWorld(t testing.TB, fork bool, base, head map[string]string) world {
	t.Helper()
	return world{jobtest.NewWorld(t, fork, base, head)}
}
