// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package egress

import "testing"

// With the tag nightly these tests run all their cases: see internal/kit/sample.

func TestNightlyAttackQuestionsAtOnce(t *testing.T) { TestAttackQuestionsAtOnce(t) }
func TestNightlyAttackHalfHeads(t *testing.T)       { TestAttackHalfHeads(t) }
func TestNightlyAttackUnreadBodies(t *testing.T)    { TestAttackUnreadBodies(t) }
func TestNightlyUnread(t *testing.T)                { TestUnread(t) }
