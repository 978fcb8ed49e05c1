// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance_test

import (
	"os"
	"testing"

	"github.com/fumehood/fumehood/internal/roottest"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/sandbox/install/installtest"
	"github.com/fumehood/fumehood/pkg/session/conformance"
)

func TestMain(m *testing.M) {
	if code, is := gate.Helper(); is {
		os.Exit(code)
	}
	roottest.Main(m)
}

func TestLocal(t *testing.T) { conformance.Run(t, openLocal) }

func openLocal(t *testing.T) conformance.Gate {
	installtest.Runsc(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	g, err := gate.New(t.Context(), gate.Options{Workspace: t.TempDir(), Policies: []gate.Policy{{Layer: conformance.Policy()}}})
	if err != nil {
		t.Fatal(err)
	}
	return conformance.Of(g)
}
