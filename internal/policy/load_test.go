// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/policies"
)

// What the shipped layer is spared when it is loaded is checked here.
func TestShippedLayerHasNoMistake(t *testing.T) {
	lanetest.SkipShort(t)
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	if s.shipped = false; len((&layer{shipped: true}).sparedStages()) == 0 {
		t.Error("it is spared nothing")
	}
	l, err := compileLayer(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.points) != len(module.Points()) {
		t.Errorf("it has rules at %d points of %d", len(l.points), len(module.Points()))
	}
	s.Files = append(s.Files, File{"command/mistake.rego", []byte("package fumehood.command\n\nallow contains {\"rule\": \"a.b\"} if count(1) == 1\n")})
	if _, err := compileLayer(t.Context(), s); err == nil {
		t.Error("a mistake in it is not found")
	}
}

// The points of the shipped layer that are left for their first use are restored without an error,
// and for all callers once.
func TestReady(t *testing.T) {
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	l, err := restoreLayer(s, policies.Compiled)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{sharedState: sharedState{layers: []*layer{l}}}
	var both sync.WaitGroup
	both.Go(e.Ready)
	both.Go(e.Ready)
	both.Wait()
	for _, name := range module.Points() {
		if _, err := l.points[name].compiled(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
