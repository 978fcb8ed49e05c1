// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// A sandbox finds its prewarmer.
func TestE2EPrewarmer(t *testing.T) {
	r := installtest.Runsc(t)
	if !r.Prewarmed {
		t.Fatal(r.PrewarmerNote)
	}
	for _, text := range startFast(t, r) {
		if want := `"gvisor-sentry-prewarmer" found: prepending`; !strings.Contains(text, want) {
			t.Errorf("run.log does not say %q", want)
		}
	}
}
