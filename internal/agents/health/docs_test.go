// SPDX-License-Identifier: Apache-2.0

package health

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/golden"
)

var row = regexp.MustCompile("(?m)^\\| `(fumehood_\\w+)` \\| (?:`\\w+`(?:: ([\\w, ]+))?)? *\\|")

// docs/OPERATIONS.md has every metric with every value of its label, and no other. The values of
// versions and digests are not listed.
func TestDocumented(t *testing.T) {
	documented := map[string]string{}
	for _, m := range row.FindAllSubmatch(golden.Read(t, "../../../docs/OPERATIONS.md"), -1) {
		values := strings.Split(strings.TrimSpace(string(m[2])), ", ")
		slices.Sort(values)
		documented[string(m[1])] = strings.Join(values, ", ")
	}
	families, err := used(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		var values []string
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
		}
		if slices.Sort(values); strings.HasSuffix(f.GetName(), "_info") {
			values = nil
		}
		if got, there := documented[f.GetName()]; !there || got != strings.Join(values, ", ") {
			t.Errorf("%s has the values %q, docs/OPERATIONS.md %q", f.GetName(), values, got)
		}
	}
	if len(families) != len(documented) {
		t.Errorf("%d metrics, %d in docs/OPERATIONS.md", len(families), len(documented))
	}
}
