// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestMerge(t *testing.T) {
	file := mustDecode(t, full, Path)
	e, err := MergeOverrides(file,
		Override{Field: "timeout", Value: "10m", From: "input timeout"},
		Override{Field: "policy", Value: " ", From: "input policy"}, // an input that was not given
		Override{Field: "limits", Value: "cpus=4, wall=3m", From: "input limits"},
		Override{Field: "registries", Value: "go,\n npm", From: "input registries"},
		Override{Field: "timeout", Value: "1h", From: "--timeout"},
		Override{Field: "setup", Value: "make a && make b", From: "--setup"},
		Override{Field: "cache", Value: "true", From: "--cache"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := file
	want.Timeout = proposal.Duration(time.Hour)
	want.Limits = &proposal.Limits{Memory: 4 << 30, CPUs: 4, Wall: proposal.Duration(3 * time.Minute)}
	want.Registries = Registries{Listed: true, Names: []string{"go", "npm"}}
	want.Setup = Setup{Mode: Listed, Commands: []Command{{Run: "make a && make b"}}}
	want.Cache = Cache{}
	if diff := cmp.Diff(want, e.Config, same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if file.Limits.CPUs != 2 {
		t.Error("Merge changed the file's limits")
	}
	var out strings.Builder
	for _, v := range e.Values {
		fmt.Fprintf(&out, "%-14s %-36s %s\n", v.Field, v.Text, v.Source)
	}
	golden.Compare(t, "testdata/merged.txt", []byte(out.String()))
}

func TestMergeRejects(t *testing.T) {
	for _, c := range []struct{ field, value, want string }{
		{"timeout", "soon", `--x: invalid value "soon": want a duration such as "90s" or "2m"`},
		{"schema", "fumehood.config/v1", `--x: unknown setting "schema"`},
		{"x", "1", `--x: unknown setting "x"`},
		{"limits", "memroy=1GiB", `--x: memroy: unknown field "memroy": did you mean "memory"?`},
		{"limits", "memory", "--x: memory: is empty: give it a value or leave it out"},
		{"limits", "cpus=1,cpus=2", "--x: cpus: is given twice, first in line 1"},
		{"registries", "npm, cargo", `--x: [1]: unknown registry "cargo": did you mean "crates"?`},
		{"registries", ",", "--x: is empty: give it at least one item"},
		{"cache", "yes", `--x: want true or false, got the text "yes"`},
		{"layers", "write", `--x: want true or false, got the text "write"`},
		{"policy", "/etc", `--x: invalid value "/etc": want a path relative to the workspace, without ".."`},
		{"tools", "/root/..", `--x: [0]: invalid value "/root/..": want the plain path of a directory other than /`},
		{"hide", "a/**/b", `--x: [0]: invalid pattern "a/**/b": want a name or a path of the repository, in which * is any text without a slash`},
		{"setup", "a\x00b", "--x: [0]: contains the control character U+0000 as character 2, which is not allowed"},
		{"setup", "a\xffb", "--x: invalid value: want at most 65536 bytes of UTF-8"},
		{"setup", "a\nschema: x", ""},
	} {
		e, err := MergeOverrides(Config{}, Override{Field: c.field, Value: c.value, From: "--x"})
		if got := fmt.Sprint(err); c.want != "" && got != c.want {
			t.Errorf("%s=%q: %s, want %s", c.field, c.value, got, c.want)
		}
		if c.want == "" && (err != nil || e.Config.Setup.Commands[0].Run != c.value) {
			t.Errorf("%s=%q: %v %+v", c.field, c.value, err, e.Config)
		}
		if c.want != "" && e.Values != nil {
			t.Errorf("%s=%q: an error came with values", c.field, c.value)
		}
	}
}

// Every field can be overridden, and says so.
func TestMergeKnowsEveryField(t *testing.T) {
	values := map[string]string{
		"setup": "none", "registries": "none", "rootfs": "host", "tools": "/opt/go/bin", "allow-tools": "acmelint", "hide": "secrets/**, *.pem", "projects": "docs, tools/gen", "services": "redis", "limits": "pids=5", "timeout": "1m",
		"policy": "p", "cache": "true", "compare-base": "false", "results": "read", "layers": "true", "checkout": "lfs=true", "comment": "detail=quiet, length=9000, mention=requester, lines=linters",
		"review": "severity=high, language=German, transcript=true",
	}
	for _, f := range configShape.Fields {
		if f.Name == "schema" {
			continue
		}
		e, err := MergeOverrides(Config{}, Override{Field: f.Name, Value: values[f.Name], From: "input " + f.Name})
		if err != nil {
			t.Error(err)
			continue
		}
		given := 0
		for _, v := range e.Values {
			if v.Source.Name != "" {
				given++
			}
		}
		if given != 1 {
			t.Errorf("%s: %d values come from the override", f.Name, given)
		}
	}
}
