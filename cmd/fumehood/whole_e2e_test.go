// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import "testing"

const whole = true

// With the tag e2e these tests run all of their cases: see oneIn.

func TestWholeActionClumsy(t *testing.T)            { TestActionClumsy(t) }
func TestWholeActionClumsyReport(t *testing.T)      { TestActionClumsyReport(t) }
func TestWholeActionForgedArtifact(t *testing.T)    { TestActionForgedArtifact(t) }
func TestWholeActionHostileArchives(t *testing.T)   { TestActionHostileArchives(t) }
func TestWholeActionHostileCheckout(t *testing.T)   { TestActionHostileCheckout(t) }
func TestWholeActionMisbehavingGitHub(t *testing.T) { TestActionMisbehavingGitHub(t) }
func TestWholeActionNoMistake(t *testing.T)         { TestActionNoMistake(t) }
func TestWholeActionNoisyFork(t *testing.T)         { TestActionNoisyFork(t) }
func TestWholeActionPlanPathStaysInTheWorkspace(t *testing.T) {
	TestActionPlanPathStaysInTheWorkspace(t)
}
func TestWholeActionPolicyPathTricks(t *testing.T) { TestActionPolicyPathTricks(t) }
func TestWholeActionReportMemory(t *testing.T)     { TestActionReportMemory(t) }
func TestWholeBotClumsy(t *testing.T)              { TestBotClumsy(t) }
func TestWholeBotForgedRequest(t *testing.T)       { TestBotForgedRequest(t) }
func TestWholeBotImpostors(t *testing.T)           { TestBotImpostors(t) }
func TestWholeInstallRace(t *testing.T)            { TestInstallRace(t) }
func TestWholeKilledAtEveryStep(t *testing.T)      { TestKilledAtEveryStep(t) }
