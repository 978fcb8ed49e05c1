// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"
	"testing"

	"github.com/fumehood/fumehood/pkg/policy/bounds"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

// BenchmarkLoad is what the first engine of a process costs: at most 30 ms.
func BenchmarkLoad(b *testing.B) {
	s, err := shipped()
	if err != nil {
		b.Fatal(err)
	}
	began := bounds.ProcessorTime()
	for b.Loop() {
		if _, err := compileLayer(b.Context(), s); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((bounds.ProcessorTime()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// What the shipped layer is spared when it is loaded is checked here.
func TestShippedLayerHasNoMistake(t *testing.T) {
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	if s.shipped = false; len((&layer{shipped: true}).spared()) == 0 {
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

// The points of the shipped layer that are compiled at first use compile without an error,
// and for all callers once.
func TestReady(t *testing.T) {
	s, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	l, err := compileLayer(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{layers: []*layer{l}}
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
