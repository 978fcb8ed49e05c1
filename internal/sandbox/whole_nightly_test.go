// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package sandbox

import "testing"

// With the tag nightly these tests make the full number of attempts: see
// internal/kit/sample.

func TestNightlyReapTogether(t *testing.T)  { TestReapTogether(t) }
func TestNightlyTricks(t *testing.T)        { TestTricks(t) }
func TestNightlySwap(t *testing.T)          { TestE2ESwap(t) }
func TestNightlyLoad(t *testing.T)          { TestLoad(t) }
func TestNightlyManyExecs(t *testing.T)     { TestManyExecs(t) }
func TestNightlyControlPlaces(t *testing.T) { TestControlPlaces(t) }

func TestNightlyBackgroundForks(t *testing.T)    { TestBackgroundForks(t) }
func TestNightlyBackgroundOutlives(t *testing.T) { TestBackgroundOutlives(t) }
func TestNightlyImageRefused(t *testing.T)       { TestImageRefused(t) }
func TestNightlyPoolRefuses(t *testing.T)        { TestPoolRefuses(t) }
