// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package policy_test

import "testing"

// With the tag e2e these tests try all of their cases: see pkg/internal/sample.

func TestWholeBombs(t *testing.T)                        { TestBombs(t) }
func TestWholeNestedPolicies(t *testing.T)               { TestNestedPolicies(t) }
func TestWholeHostileStaysRefusedWithHosts(t *testing.T) { TestHostileStaysRefusedWithHosts(t) }
