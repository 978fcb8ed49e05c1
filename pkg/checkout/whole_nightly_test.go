// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package checkout

import "testing"

// With the tag nightly these tests try all of their cases: see pkg/internal/sample.

func TestNightlyConfigLikeGit(t *testing.T) { TestConfigLikeGit(t) }
