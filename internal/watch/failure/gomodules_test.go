// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		list := readOutput([]byte(out), nil, Options{Tree: test.tree, GoModules: test.modules})
		if len(list) != 1 || list[0].File != test.want || (list[0].Line == 7) != (test.want != "") {
			t.Errorf("%s: %+v, want %q", test.pkg, list, test.want)
		}
	}
}

// A test of a suite of gocheck has a name, values and a place, and the Go test around the suite, which
// says nothing of its own, comes last. An example has what it printed.
func TestGoInnerTests(t *testing.T) {
	const out = `
----------------------------------------------------------------------
FAIL: functions_test.go:25: functionSuite.TestNew

functions_test.go:29:
    c.Assert(err.Error(), gc.Equals, "testing")
... obtained string = "testingtesting"
... expected string = "testing"


----------------------------------------------------------------------
PANIC: error_test.go:142: errorsSuite.TestNewErr

... Panic: runtime error: index out of range [3] with length 1 (PC=0x476D94)

/usr/local/go/src/runtime/panic.go:860
  in gopanic
error_test.go:150
  in errorsSuite.TestNewErr
OOPS: 61 passed, 1 FAILED, 1 PANICKED
--- FAIL: Test (0.02s)
--- FAIL: TestOther (0.00s)
--- FAIL: ExampleTrace (0.00s)
got:
first
a line more
want:
first
--- FAIL: ExampleWrap (0.00s)
got:
0
want:
1234
FAIL
FAIL	github.com/juju/errors	0.023s
FAIL
`
	want := []proposal.Diagnostic{
		{Tool: "gocheck", Level: Error, Suite: "github.com/juju/errors", Test: "functionSuite.TestNew", Message: `c.Assert(err.Error(), gc.Equals, "testing")`,
			Expected: `"testing"`, Actual: `"testingtesting"`, File: "functions_test.go", Line: 29},
		{Tool: "gocheck", Level: Error, Suite: "github.com/juju/errors", Test: "errorsSuite.TestNewErr",
			Message: "Panic: runtime error: index out of range [3] with length 1", File: "error_test.go", Line: 142},
		{Tool: "go test", Level: Error, Suite: "github.com/juju/errors", Test: "TestOther", Message: Unsaid},
		{Tool: "go test", Level: Error, Suite: "github.com/juju/errors", Test: "ExampleTrace", Message: "prints other output", Expected: "nothing more", Actual: "a line more"},
		{Tool: "go test", Level: Error, Suite: "github.com/juju/errors", Test: "ExampleWrap", Message: "prints other output", Expected: "1234", Actual: "0"},
		{Tool: "gocheck", Level: Error, Suite: "github.com/juju/errors", Test: "Test", Message: Unsaid},
	}
	if diff := cmp.Diff(want, readOutput([]byte(out), nil, Options{})); diff != "" {
		t.Error(diff)
	}
	names := testsOf(Diagnostics(&proposal.Result{Stdout: proposal.Stream{Head: []byte(out)}}, Options{}))
	if want := "github.com/juju/errors Test"; !slices.Contains(names, want) || len(names) != 6 {
		t.Errorf("%q, want %q among them: what a suite prints hides no test of go test", names, want)
	}
}
