// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package policy_test

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlyBombs(t *testing.T)                        { TestBombs(t) }
func TestNightlyNestedPolicies(t *testing.T)               { TestNestedPolicies(t) }
func TestNightlyHostileStaysRefusedWithHosts(t *testing.T) { TestHostileStaysRefusedWithHosts(t) }
func TestNightlyReusedAnswersHold(t *testing.T)            { TestReusedAnswersHold(t) }
func TestNightlyNamedProgramsBegin(t *testing.T)           { TestNamedProgramsBegin(t) }
