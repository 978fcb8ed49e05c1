// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package job_test

import "testing"

// With the tag nightly these tests run all of their cases: see package sample.

func TestNightlyActionForgedArtifact(t *testing.T)    { TestE2EActionForgedArtifact(t) }
func TestNightlyActionNoisyFork(t *testing.T)         { TestE2EActionNoisyFork(t) }
func TestNightlyBotForgedRequest(t *testing.T)        { TestE2EBotForgedRequest(t) }
func TestNightlyBotImpostors(t *testing.T)            { TestE2EBotImpostors(t) }
func TestNightlyActionHostileArchives(t *testing.T)   { TestE2EActionHostileArchives(t) }
func TestNightlyActionReportMemory(t *testing.T)      { TestE2EActionReportMemory(t) }
func TestNightlyActionMisbehavingGitHub(t *testing.T) { TestE2EActionMisbehavingGitHub(t) }
func TestNightlyActionPolicyPathTricks(t *testing.T)  { TestE2EActionPolicyPathTricks(t) }
func TestNightlyActionHostileCheckout(t *testing.T)   { TestE2EActionHostileCheckout(t) }
func TestNightlyActionPlanPathStaysInTheWorkspace(t *testing.T) {
	TestE2EActionPlanPathStaysInTheWorkspace(t)
}
