// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/internal/kit/golden"
)

// docs/CONFIGURATION.md and its pages have every field of the format, and only those; their examples are
// valid, and they name the registries and services that exist.
func TestPage(t *testing.T) {
	page := ""
	for _, name := range []string{"CONFIGURATION", "configuration/setup", "configuration/workspace"} {
		page += string(golden.Read(t, "../../../docs/"+name+".md"))
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(examples) < 3 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, m := range examples {
		if _, problems := Decode([]byte(m[1]), Path); len(problems) > 0 {
			t.Errorf("%v\n%s", problems, m[1])
		}
	}
	for head, shape := range map[string]*document.Shape{"field": &configShape, "field of a command": &commandShape, "field of checkout": &checkoutShape, "field of comment": &commentShape, "field of review": &reviewShape, "limit": limitsShape()} {
		_, table, found := strings.Cut(page, "| "+head+" |")
		table, _, _ = strings.Cut(table, "\n\n")
		if !found {
			t.Errorf("no table %q", head)
		}
		var got, want []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
			got = append(got, m[1])
		}
		for _, f := range shape.Fields {
			want = append(want, f.Name)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("table %q (-format +page):\n%s", head, diff)
		}
	}
	for _, word := range slices.Concat(document.Registries, services) {
		if !strings.Contains(page, "`"+word+"`") {
			t.Errorf("%s is not on the page", word)
		}
	}
}
