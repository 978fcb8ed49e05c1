// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// go test prints the bare name of a file. Where it is follows from the module of its package, whose path
// can end in a version, or not say where the repository is.
func TestGoModules(t *testing.T) {
	modules := []proposal.GoModule{{Dir: ".", Path: "github.com/o/r/v3"}, {Dir: "tools/gen", Path: "example.org/gen"}, {Dir: "sub", Path: "github.com/o/r/v3/sub"}}
	known := NewTree([]string{"x_test.go", "a/x_test.go", "tools/gen/b/x_test.go"}, false)
	for _, test := range []struct {
		pkg     string
		modules []proposal.GoModule
		tree    *Tree
		want    string
	}{
		{"github.com/o/r/v3", modules, nil, "x_test.go"},
		{"github.com/o/r/v3/a", modules, nil, "a/x_test.go"},
		{"github.com/o/r/v3/sub/a", modules, nil, "sub/a/x_test.go"},
		{"example.org/gen", modules, nil, "tools/gen/x_test.go"},
		{"example.org/gen/b", modules, known, "tools/gen/b/x_test.go"},
		{"example.org/gen/c", modules, known, ""},
		{"example.org/gen/../../..", modules, nil, ""},
		{"github.com/o/r/v3", nil, nil, "x_test.go"},
		{"github.com/o/r/v3/a", nil, nil, "a/x_test.go"},
		{"github.com/o/r/v1", nil, nil, "v1/x_test.go"},
		{"github.com/o/other/a", modules, nil, "a/x_test.go"},
		{"github.com/o/r/v3", []proposal.GoModule{{Dir: "../..", Path: "github.com/o/r/v3"}}, nil, ""},
	} {
		out := "--- FAIL: TestX (0.00s)\n    x_test.go:7: got 1, want 2\nFAIL\nFAIL\t" + test.pkg + "\t0.01s\nFAIL\n"
		list := Read([]byte(out), nil, Options{Tree: test.tree, GoModules: test.modules})
		if len(list) != 1 || list[0].File != test.want || (list[0].Line == 7) != (test.want != "") {
			t.Errorf("%s: %+v, want %q", test.pkg, list, test.want)
		}
	}
}
