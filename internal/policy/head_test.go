// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestKnownExpansions holds that only what mktemp surely printed is believed.
func TestKnownExpansions(t *testing.T) {
	e := shipped(t)
	for text, allowed := range map[string]bool{
		"t=$(mktemp -d)\necho x > \"$t/out\"":                true,
		"t=$(mktemp -d /tmp/a.XXXXXX)\necho x > \"$t/out\"":  true,
		"t=$(mktemp -d /etc/a.XXXXXX)\necho x > \"$t/out\"":  false,
		"t=$(mktemp -d)\nt=/etc\necho x > \"$t/out\"":        false,
		"t=$(mktemp -d)\nread -r t < f\necho x > \"$t/out\"": false,
		"echo x > \"$t/etc/x\"\nt=$(mktemp -d)":              false,
		"t=$(mktemp -d)\necho x > \"$t/../../etc/x\"":        false,
		"REPLY=$(mktemp)\nread < f\necho x > \"$REPLY/x\"":   false,
		"f=out.txt\necho x > \"$f\"":                         true,
		"f=/etc/x\necho x > \"$f\"":                          false,
		"f=out.txt\nf=.git/config\necho x > \"$f\"":          false,
		"f=out.txt\nread -r f < g\necho x > \"$f\"":          false,
		"f=\"$g\"\necho x > \"$f\"":                          false,
		"x=--output=/etc/x\nsort $x a":                       false,
		"w=-exec=curl\ngo test $w ./x":                       false,
		"f=a.go\ngofmt -l \"$f\"":                            true,
	} {
		if d := decide(t, e, text); (d.Effect == proposal.Allow) != allowed {
			t.Errorf("%q: %v by %v", text, d.Effect, d.Rules)
		}
	}
}
