// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package sandbox

import "testing"

func TestSwapOften(t *testing.T) { swap(t, 300) }

func TestThousandExecs(t *testing.T) { manyExecs(t, 1000) }
