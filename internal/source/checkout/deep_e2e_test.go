// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package checkout

import "testing"

func TestE2EDeepFolders(t *testing.T) {
	traces, _ := hostileEnvironment(t)
	writesHostile(t, traces, []hostileTree{deepFolders(3000)})
}
