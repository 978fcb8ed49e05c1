// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package comment_test

import "testing"

func TestNightlyJobsAtTheSameTime(t *testing.T) { TestJobsAtTheSameTime(t) }
