// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
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
	writeFile(t, ws, "file", "x")
	for i := range sandbox.DefaultImageFrom { // links cost less than files
		dir := filepath.Join(ws, fmt.Sprint("d", i/1000))
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Link(filepath.Join(ws, "file"), filepath.Join(dir, fmt.Sprint("file", i)))); err != nil {
			t.Fatal(err)
		}
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
