// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package gate_test

import "testing"

// All cases of a sampled test: see package sample.
func TestNightlySessionKilled(t *testing.T)     { TestE2ESessionKilled(t) }
func TestNightlySessionMany(t *testing.T)       { TestSessionMany(t) }
func TestNightlySessionEndsAtOnce(t *testing.T) { TestSessionEndsAtOnce(t) }
func TestNightlyImageFrom(t *testing.T)         { TestE2EImageFrom(t) }
func TestNightlyHostileLayers(t *testing.T)     { TestHostileLayers(t) }
func TestNightlyLayersFollowReads(t *testing.T) { TestLayersFollowReads(t) }
func TestNightlyEarly(t *testing.T)             { TestEarly(t) }
func TestNightlyPoolKilled(t *testing.T)        { TestE2EPoolKilled(t) }
