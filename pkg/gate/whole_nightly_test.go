// SPDX-License-Identifier: Apache-2.0

//go:build linux && nightly

package gate_test

import "testing"

// All cases of a sampled test: see package sample.
func TestNightlySessionKilled(t *testing.T)     { TestSessionKilled(t) }
func TestNightlySessionMany(t *testing.T)       { TestSessionMany(t) }
func TestNightlySessionEndsAtOnce(t *testing.T) { TestSessionEndsAtOnce(t) }
