// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import "testing"

const whole = true

// These tests try all of their cases with the tag e2e: see oneIn.

func TestWholeActionHostileCheckout(t *testing.T)   { TestActionHostileCheckout(t) }
func TestWholeActionMisbehavingGitHub(t *testing.T) { TestActionMisbehavingGitHub(t) }
func TestWholeActionNoisyFork(t *testing.T)         { TestActionNoisyFork(t) }
func TestWholeActionReportMemory(t *testing.T)      { TestActionReportMemory(t) }
func TestWholeKilledAtEveryStep(t *testing.T)       { TestKilledAtEveryStep(t) }
