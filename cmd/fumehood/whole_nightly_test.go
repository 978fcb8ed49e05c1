// SPDX-License-Identifier: Apache-2.0

//go:build linux && nightly

package main

import "testing"

const whole = true

// With the tag nightly these tests run all of their cases: see oneIn.

func TestNightlyActionForgedArtifact(t *testing.T) { TestE2EActionForgedArtifact(t) }
func TestNightlyActionNoisyFork(t *testing.T)      { TestE2EActionNoisyFork(t) }
func TestNightlyActBot(t *testing.T)               { TestE2EActBot(t) }
func TestNightlyInstallRace(t *testing.T)          { TestE2EInstallRace(t) }
func TestNightlyFirstDay(t *testing.T)             { TestE2EFirstDay(t) }
func TestNightlyPlanted(t *testing.T)              { TestE2EPlanted(t) }
func TestNightlyPlantedModel(t *testing.T)         { TestE2EPlantedModel(t) }
func TestNightlyKilledAtEveryStep(t *testing.T)    { TestKilledAtEveryStep(t) }
func TestNightlyActionPlanPathStaysInTheWorkspace(t *testing.T) {
	TestE2EActionPlanPathStaysInTheWorkspace(t)
}
func TestNightlyBotForgedRequest(t *testing.T)        { TestE2EBotForgedRequest(t) }
func TestNightlyBotImpostors(t *testing.T)            { TestE2EBotImpostors(t) }
func TestNightlyActionHostileArchives(t *testing.T)   { TestE2EActionHostileArchives(t) }
func TestNightlyActionReportMemory(t *testing.T)      { TestE2EActionReportMemory(t) }
func TestNightlyActionMisbehavingGitHub(t *testing.T) { TestE2EActionMisbehavingGitHub(t) }
func TestNightlyActionPolicyPathTricks(t *testing.T)  { TestE2EActionPolicyPathTricks(t) }
func TestNightlyActionHostileCheckout(t *testing.T)   { TestE2EActionHostileCheckout(t) }
func TestNightlyCorpusEntrances(t *testing.T)         { TestCorpusEntrances(t) }

// TestNightlyScripts runs the scripts that take longest.
func TestNightlyScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, listScripts(t, "testdata/script/nightly/*.txtar"), 1)
}
