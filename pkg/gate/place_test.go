// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An account without a home directory gets an error that says what to do.
func TestNoPlaceForArtifacts(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	_, err := newPlace(Options{}, "id")
	f := proposal.FailureOf(err)
	if f == nil || f.Code != "artifacts.not-writable" || f.Hint == "" {
		t.Errorf("without a home: %+v", f)
	}
}
