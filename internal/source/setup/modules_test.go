// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestGoModules(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{
		"go.mod":                file("// the module\nmodule \"example.org/top/v2\" // a comment\n\ngo 1.24\n"),
		"go.work":               file("go 1.24\n\nuse (\n\t.\n\t./libs/deep\n\t../outside\n)\n"),
		"libs/deep/go.mod":      file("module example.org/deep\n"),
		"services/a/go.mod":     file("module example.org/a\n"),
		"services/b/go.mod":     file("module example.org/not-named-by-anything\n"),
		"tools/go.mod":          file("require x v1.0.0\nmodule\texample.org/top/tools\n"),
		"strange/go.mod":        file("module <b>\n"),
		"binary/go.mod":         file("module \xff\n"),
		"node_modules/x/go.mod": file("module example.org/x\n"),
	}
	want := []proposal.GoModule{{Dir: ".", Path: "example.org/top/v2"}, {Dir: "services/a", Path: "example.org/a"}, {Dir: "libs/deep", Path: "example.org/deep"}, {Dir: "tools", Path: "example.org/top/tools"}}
	if diff := cmp.Diff(want, GoModules(root, "services/a", "", "../..")); diff != "" {
		t.Error(diff)
	}
}
