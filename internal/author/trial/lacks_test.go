// SPDX-License-Identifier: Apache-2.0

package trial

import "testing"

func TestLacks(t *testing.T) {
	reached := []RuleReport{{Layer: "a", Tests: 1}, {Layer: "a"}}
	for name, c := range map[string]struct {
		r         Report
		only      string
		threshold float64
		want      []string
	}{
		"enough":           {Report{Passed: 1, Layers: []LayerReport{{"a", 1}}, Rules: reached}, "", 50, nil},
		"too few rules":    {Report{Passed: 1, Layers: []LayerReport{{"a", 1}}, Rules: reached}, "", 51, []string{"policy.coverage"}},
		"no test":          {Report{Layers: []LayerReport{{"a", 0}}}, "", 0, []string{"policy.no-tests"}},
		"no rule reached":  {Report{Passed: 1, Layers: []LayerReport{{"a", 1}}, Rules: reached[1:]}, "", 0, []string{"policy.no-tests"}},
		"one failed":       {Report{Failed: 1, Layers: []LayerReport{{"a", 1}}, Rules: reached[1:]}, "", 0, nil},
		"none of the name": {Report{Layers: []LayerReport{{"a", 0}}, Rules: reached}, "x", 0, []string{"policy.no-tests"}},
		"some of the name": {Report{Passed: 1, Layers: []LayerReport{{"a", 0}}}, "x", 0, nil},
	} {
		var got []string
		for _, lack := range c.r.CheckSufficient(c.only, c.threshold) {
			if got = append(got, lack.Code); lack.Message == "" || lack.Hint == "" {
				t.Errorf("%s: %+v", name, lack)
			}
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
