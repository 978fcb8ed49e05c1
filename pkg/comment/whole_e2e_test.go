// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package comment

import "testing"

// With the tag e2e these tests run all of their cases: see pkg/internal/sample.

func TestWholeOrders(t *testing.T)     { TestOrders(t) }
func TestWholeJoinOfMany(t *testing.T) { TestJoinOfMany(t) }
