// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package report

import "testing"

// With the tag nightly these tests try all of their cases: see internal/kit/sample.

func TestNightlyManyObservations(t *testing.T)  { TestManyObservations(t) }
func TestNightlyAttacksEverywhere(t *testing.T) { TestAttacksEverywhere(t) }
func TestNightlyEveryLimit(t *testing.T)        { TestEveryLimit(t) }
func TestNightlyHostilePages(t *testing.T)      { TestHostilePages(t) }
func TestNightlyMutatedFields(t *testing.T)     { TestMutatedFields(t) }
func TestNightlyMutatedTexts(t *testing.T)      { TestMutatedTexts(t) }
func TestNightlyMutatedTypes(t *testing.T)      { TestMutatedTypes(t) }
func TestNightlySized(t *testing.T)             { TestSized(t) }
func TestNightlySizes(t *testing.T)             { TestSizes(t) }
