// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/policies"
)

// programSet is one of the sets of tools in policies/lib/programs.rego.
func programSet(t *testing.T, name string) []string {
	t.Helper()
	text, err := policies.FS.ReadFile("lib/programs.rego")
	if err != nil {
		t.Fatal(err)
	}
	body := regexp.MustCompile(`(?ms)^` + name + ` := \{(.*?)^\}`).FindSubmatch(text)
	if body == nil {
		t.Fatalf("no set %s", name)
	}
	var names []string
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllSubmatch(body[1], -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// Every tool that policy allows starts freely, has a list, or has options and starts nothing;
// only runners, which run the repository's code, and shells start freely.
func TestEveryToolHasChildren(t *testing.T) {
	plain := " " + strings.Join(programSet(t, "plain"), " ") + " "
	runners := " " + strings.Join(programSet(t, "runners"), " ") + " bash sh dash "
	for _, set := range []string{"readers", "wrappers", "runners", "changers", "judged"} {
		for _, name := range programSet(t, set) {
			known, free := facts.HasChildren(name)
			runs := strings.Contains(runners, " "+name+" ") && !strings.Contains(plain, " "+name+" ")
			if !known || free && !runs {
				t.Errorf("%s, one of the %s: it is known what it starts: %v, freely: %v", name, set, known, free)
			}
		}
	}
}
