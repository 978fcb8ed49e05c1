// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import "testing"

const whole = true

// With the tag e2e these tests run all of their cases: see oneIn.

func TestWholeActionForgedArtifact(t *testing.T) { TestActionForgedArtifact(t) }
func TestWholeActionNoisyFork(t *testing.T)      { TestActionNoisyFork(t) }
func TestWholeInstallRace(t *testing.T)          { TestInstallRace(t) }
func TestWholeKilledAtEveryStep(t *testing.T)    { TestKilledAtEveryStep(t) }

// TestLongScripts runs the scripts that take long, of which go test ./... has none.
func TestLongScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata/script/e2e/*.txtar", 1)
}
