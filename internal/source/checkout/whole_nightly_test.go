// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package checkout

import "testing"

// With the tag nightly these tests run all their cases: see internal/kit/sample.

func TestNightlyBrokenPacks(t *testing.T)       { TestBrokenPacks(t) }
func TestNightlyConfigLikeGit(t *testing.T)     { TestConfigLikeGit(t) }
func TestNightlyFetchRefuses(t *testing.T)      { TestFetchRefuses(t) }
func TestNightlyHostile(t *testing.T)           { TestHostile(t) }
func TestNightlyHostileSubmodules(t *testing.T) { TestHostileSubmodules(t) }
func TestNightlyInspectRefuses(t *testing.T)    { TestInspectRefuses(t) }
func TestNightlyLyingPacks(t *testing.T)        { TestLyingPacks(t) }
func TestNightlyOwnChecks(t *testing.T)         { TestOwnChecks(t) }
func TestNightlyRedirect(t *testing.T)          { TestRedirect(t) }
