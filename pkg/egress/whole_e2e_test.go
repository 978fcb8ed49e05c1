// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package egress

import "testing"

// With the tag e2e these tests run all their cases: see pkg/internal/sample.

func TestWholeAttackQuestionsAtOnce(t *testing.T) { TestAttackQuestionsAtOnce(t) }
func TestWholeAttackHalfHeads(t *testing.T)       { TestAttackHalfHeads(t) }
func TestWholeAttackUnreadBodies(t *testing.T)    { TestAttackUnreadBodies(t) }
func TestWholeUnread(t *testing.T)                { TestUnread(t) }
