// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/internal/sample"
	"github.com/fumehood/fumehood/pkg/sandbox"
)

// A workspace is an image where that pays: in runs of several commands, and where a caller
// asks for it.
func TestImageFrom(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	for i := range sandbox.DefaultImageFrom {
		writeFile(t, ws, fmt.Sprintf("d%d/file%d", i/100, i), "x")
	}
	const text = "grep -c erofs /proc/mounts"
	tests := map[string]struct {
		from int
		plan []string
		want string
	}{
		"one command":             {0, []string{text}, "0\n"},
		"three commands":          {0, []string{text, "true", "true"}, "1\n"},
		"one command, always":     {1, []string{text}, "1\n"},
		"three commands, never":   {math.MaxInt, []string{text, "true", "true"}, "0\n"},
		"three, a larger minimum": {1_000_000, []string{text, "true", "true"}, "0\n"},
	}
	for _, name := range sample.Keys(t, tests, 2, 5) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if sandbox.DefaultImageFrom == 1 && test.from == 0 {
				test.want = "1\n"
			}
			g := newGate(t, gate.Options{Workspace: ws, ImageFrom: test.from})
			r, err := g.Run(t.Context(), planOf(t, test.plan...))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.Records[0].Result.Stdout.Head); got != test.want {
				t.Errorf("%q images, want %q", strings.TrimSpace(got), strings.TrimSpace(test.want))
			}
		})
	}
}
