// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package interpreter

import "testing"

func TestWholeGrowth(t *testing.T) { TestGrowth(t) }

func TestWholeHostileCells(t *testing.T) { TestHostileCells(t) }
