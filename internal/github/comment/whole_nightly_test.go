// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package comment

import "testing"

// With the tag nightly these tests run all of their cases: see internal/kit/sample.

func TestNightlyOrders(t *testing.T)     { TestOrders(t) }
func TestNightlyJoinOfMany(t *testing.T) { TestJoinOfMany(t) }
func TestNightlyFitOfMany(t *testing.T)  { TestFitOfMany(t) }
