// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strings"

	"github.com/sethvargo/go-githubactions"
)

// renamed lists inputs that had another name. The former name is accepted for one
// release.
var renamed = []struct{ name, former, hint string }{
	{"organization", "organisation", hintBundle},
	{"dry-run", "staged", "true"},
}

// acceptFormer makes r read inputs that are given by their former name. It returns one
// warning for each. An input that has different values by its two names is a Problem.
func (r *inputReader) acceptFormer() (warnings []string) {
	given := map[string]string{}
	for _, in := range renamed {
		variable, former := "INPUT_"+variable(in.name), r.getenv("INPUT_"+variable(in.former))
		if strings.TrimSpace(former) == "" {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("input %s is deprecated: use %s", in.former, in.name))
		switch now := strings.TrimSpace(r.getenv(variable)); {
		case now == "":
			given[variable] = former
		case now != strings.TrimSpace(former):
			r.refuse(in.name, in.hint, "and the deprecated input %s have different values", in.former)
		}
	}
	getenv := r.getenv
	r.getenv = func(name string) string {
		if value, ok := given[name]; ok {
			return value
		}
		return getenv(name)
	}
	r.action = githubactions.New(githubactions.WithGetenv(r.getenv))
	return warnings
}
