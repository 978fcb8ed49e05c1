// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInputMask(t *testing.T) {
	env := map[string]string{"INPUT_GITHUB_TOKEN": "ghs_0123456789abcdef", "NPM_TOKEN": "npm-canary-1", "PEM": "-----BEGIN X-----\nAAAA\n-----END X-----\n", "SHORT": "abc", "EMPTY": ""}
	for _, c := range []struct {
		input   string
		want    []Masked
		problem string
	}{
		{"", nil, ""},
		{"NPM_TOKEN", []Masked{{"NPM_TOKEN", "npm-canary-1"}}, ""},
		{" NPM_TOKEN \n\nPEM\n", []Masked{{"NPM_TOKEN", "npm-canary-1"}, {"PEM", "-----BEGIN X-----\nAAAA\n-----END X-----"}}, ""},
		{"EMPTY\nNOT_SET", nil, ""},
		{"the value itself", []Masked{{"mask_1", "the value itself"}}, ""},
		{"NPM_TOKEN\nlower-case-value", []Masked{{"NPM_TOKEN", "npm-canary-1"}, {"mask_2", "lower-case-value"}}, ""},
		{"SHORT", nil, "entry 1 has fewer than 6 bytes"},
		{"x1$y", nil, "entry 1 has fewer than 6 bytes"},
		{strings.Repeat("value-of-some-length\n", 101), nil, "more than 100 values"},
	} {
		env["INPUT_MASK"] = c.input
		in, problems := ReadInputs(func(name string) string { return env[name] })
		if c.problem == "" {
			if diff := cmp.Diff(c.want, in.Mask); diff != "" || len(problems) > 0 {
				t.Errorf("%q: %v %s", c.input, problems, diff)
			}
			continue
		}
		if len(problems) != 1 || !strings.Contains(problems[0].Message, c.problem) || strings.Contains(problems[0].Message, "abc") {
			t.Errorf("%.20q: got %v", c.input, problems)
		}
	}
}
