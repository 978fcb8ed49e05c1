// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/internal/sample"
)

// Many cells, with results, errors and contexts that come and go, leave no memory behind:
// neither in the interpreter nor here.
func TestGrowth(t *testing.T) {
	cells := map[Language][]string{
		Python: {"x = 1", "x + 1", "def f(): return [x] * 100\nf()", "1 / 0", "print('line')"},
		Node:   {"var x = 1", "x + 1", "const o = { x }; o", "missing", "console.log('line')"},
	}
	each(t, func(t *testing.T, l Language, _ map[string]string) {
		s := newSession(t, l, "")
		rounds := sample.Rounds(t, 10_000, 2_000, 300)
		var early, late int
		for n := range rounds {
			s.run(t, cells[l][n%len(cells[l])])
			if n%200 == 0 {
				again(t, s, cells[l][0])
			}
			if n == rounds/4 {
				early = memory(s.pid)
			}
		}
		late = memory(s.pid)
		t.Logf("%d KB after %d cells, %d KB after %d", early, rounds/4, late, rounds)
		if early == 0 || late-early > 16<<10 {
			t.Errorf("from %d to %d KB", early, late)
		}
		if n := runtime.NumGoroutine(); n > 60 {
			t.Errorf("%d goroutines", n)
		}
	})
}

// again uses a context and removes it.
func again(t *testing.T, s *session, cell string) {
	t.Helper()
	if err := s.CreateContext("again"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.try(t, "again", cell, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveContext(timeout(t, 20*time.Second), "again"); err != nil {
		t.Fatal(err)
	}
}

// memory is the resident memory in KB of a process and its children.
func memory(pid int) (total int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") {
			total, _ = strconv.Atoi(strings.Fields(line)[1])
		}
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, child := range strings.Fields(string(children)) {
		n, _ := strconv.Atoi(child)
		total += memory(n)
	}
	return total
}

// A trivial cell, from Execute to its outcome.
func BenchmarkCell(b *testing.B) {
	for _, l := range languages {
		b.Run(string(l), func(b *testing.B) {
			s := newSession(b, l, "")
			var took []time.Duration
			for b.Loop() {
				took = append(took, s.run(b, words[l]["set"]).Took)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
}

// From the start of the process to hello.
func BenchmarkStart(b *testing.B) {
	for _, l := range languages {
		b.Run(string(l), func(b *testing.B) {
			for b.Loop() {
				newSession(b, l, "").Close()
			}
		})
	}
}
