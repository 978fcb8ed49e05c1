// SPDX-License-Identifier: Apache-2.0

package jobtest

import "testing"

func TestRemoveCode(t *testing.T) {
	for markdown, want := range map[string]string{
		"a `b` c":                        "a  c",
		"a ``b ` c`` d":                  "a  d",
		"a `b c":                         "a `b c",
		"a `b ``c` d":                    "a  d",
		"```go\nx `\n```\ny":             "y",
		"````\n```\nx\n````\ny":          "y",
		"```\nnot closed":                "",
		"``` a span ``` and @text":       " and @text",
		"### R: ``` a\nb ``` c\n":        "### R:  c\n",
		"a <code>x</code> b":             "a  b",
		"``` x ` y\n@text is no block\n": "``` x ` y\n@text is no block\n",
	} {
		if got := RemoveCode(markdown); got != want {
			t.Errorf("%q: %q, want %q", markdown, got, want)
		}
	}
}
