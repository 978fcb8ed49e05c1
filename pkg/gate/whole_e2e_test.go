// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package gate_test

import "testing"

// All cases of a sampled test: see package sample.
func TestWholeSessionKilled(t *testing.T) { TestSessionKilled(t) }
func TestWholeSessionMany(t *testing.T)   { TestSessionMany(t) }
