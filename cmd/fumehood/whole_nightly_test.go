// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import "testing"

const whole = true

// With the tag nightly these tests run all of their cases: see oneIn.

func TestNightlyActBot(t *testing.T)            { TestE2EActBot(t) }
func TestNightlyInstallRace(t *testing.T)       { TestE2EInstallRace(t) }
func TestNightlyFirstDay(t *testing.T)          { TestE2EFirstDay(t) }
func TestNightlyPlanted(t *testing.T)           { TestE2EPlanted(t) }
func TestNightlyPlantedModel(t *testing.T)      { TestE2EPlantedModel(t) }
func TestNightlyKilledAtEveryStep(t *testing.T) { TestKilledAtEveryStep(t) }
func TestNightlyCorpusEntrances(t *testing.T)   { TestCorpusEntrances(t) }

// TestNightlyScripts runs the scripts that take longest.
func TestNightlyScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, listScripts(t, "testdata/script/nightly/*.txtar"), 1)
}
