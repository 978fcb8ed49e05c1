// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"

	"github.com/fumehood/fumehood/internal/agents/session/conformance"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/gate"
)

func TestMain(m *testing.M) { conformance.Main(m) }

func TestLocal(t *testing.T) { conformance.Run(t, openLocal) }

func openLocal(t *testing.T) gate.Opener {
	t.Parallel()
	installtest.Runsc(t)
	g, err := gate.New(t.Context(), gate.Options{Workspace: t.TempDir(), Policies: []gate.Policy{conformance.RequiredPolicy()}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
