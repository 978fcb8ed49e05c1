// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// Every snippet of the policy tutorial is run, and prints what the page says.
func TestE2EPolicyTutorial(t *testing.T) {
	t.Parallel()
	followPage(t, string(jobtest.ReadFile(t, "../../docs/policy/tutorial.md")))
}
