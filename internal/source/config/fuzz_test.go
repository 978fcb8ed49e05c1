// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/golden"
)

// For any bytes: no panic and the same result twice. An accepted file fits the schema,
// survives a round trip, and has a valid explanation; a rejected one leaves no setting.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"schema":"fumehood.config/v1","setup":"none","cache":false}`))
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(golden.Read(f, file))
	}
	schema := golden.ReadSchema(f, published)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"", "x.json", "x.yml"} {
			c, problems := Decode(data, name)
			again, sameProblems := Decode(data, name)
			if diff := cmp.Diff(problems, sameProblems) + cmp.Diff(c, again, cmp.AllowUnexported(Config{})); diff != "" {
				t.Fatalf("two readings differ:\n%s", diff)
			}
			if len(problems) > 0 {
				if diff := cmp.Diff(Config{Digest: c.Digest}, c, cmp.AllowUnexported(Config{})); diff != "" || len(problems) > document.MaxProblems {
					t.Fatalf("%d problems and settings:\n%s", len(problems), diff)
				}
				for _, p := range problems {
					if line := Describe("x", p); p.Line < 1 || p.Col < 1 || !printable(line) || len(line) > 4096 {
						t.Fatalf("problem that cannot be printed: %q", line)
					}
				}
				continue
			}
			checkAccepted(t, schema, c)
			e, err := MergeOverrides(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range e.Values {
				if v.Source.Name != "" && v.Source.Line < 1 {
					t.Fatalf("%s has no line", v.Field)
				}
			}
		}
	})
}

// For any override: no panic, and an error or the requested field alone.
func FuzzMerge(f *testing.F) {
	f.Add("limits", "memory=4GiB,pids=5")
	f.Add("registries", "go, npm")
	f.Add("setup", "npm ci\nmake")
	schema := golden.ReadSchema(f, published)
	f.Fuzz(func(t *testing.T, field, value string) {
		e, err := MergeOverrides(Config{Schema: Schema}, Override{Field: field, Value: value, From: "--x"})
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Fatalf("%q", err)
			}
			return
		}
		checkAccepted(t, schema, e.Config)
	})
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}
