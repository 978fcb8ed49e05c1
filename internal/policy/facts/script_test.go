// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A script is read as the tool reads it: what writes a file or runs a program is not hidden by line ends,
// comments, labels, brackets, numbers, or the parts that a script has.
func TestScripts(t *testing.T) {
	for _, c := range []struct {
		tool  string
		parts []string
		plain bool
	}{
		{"awk", []string{"{print 1,\n2 > \"x\"}"}, false},
		{"awk", []string{"{print 1, # a\n\n2 > \"x\"}"}, false},
		{"awk", []string{"{print a &&\nb > \"x\"}"}, false},
		{"awk", []string{"{print a ?\nb :\nc > \"x\"}"}, false},
		{"awk", []string{"{print (1,\n2) > \"x\"}"}, false},
		{"awk", []string{"{print 1 \\\n> \"x\"}"}, false},
		{"awk", []string{"{print 1 \\\r\n> \"x\"}"}, false},
		{"awk", []string{"# \\\n{print 1 > \"x\"}"}, false},
		{"awk", []string{"# \\\nBEGIN{system(\"x\")}"}, false},
		{"awk", []string{"$1system(\"x\")"}, false},
		{"awk", []string{"BEGIN{.5getline < \"x\"}"}, false},
		{"awk", []string{"{print > \"/dev/stderr\" \"/x\"}"}, false},
		{"awk", []string{"{print a > \"/dev/stderr\"; print > \"/dev/stdout\" }"}, true},
		{"awk", []string{"{a = /[]/]\"/; system(\"x\") #\"\n}"}, false},
		{"awk", []string{"{a = /[[:alpha:]/]\"/; system(\"x\") #\"\n}"}, false},
		{"awk", []string{"{a = /[b[:]/; system(\"x\") # :]/\n}"}, false},
		{"awk", []string{"{print $1\nif ($2 > 3) n++\na = $2 > 3}"}, true},
		{"awk", []string{"/[[:alpha:]_][0-9]/ && $1 > 1e3 {print $1, \\\n $2; b = 0x1F + 1.5e-3}"}, true},
		{"awk", []string{"# a comment\n{print $1,\n $2}"}, true},
		{"sed", []string{":a w x"}, false},
		{"sed", []string{"1b a w x\n:a"}, false},
		{"sed", []string{"a\\", "s/a\nw x\n/b/p"}, false},
		{"sed", []string{"s/a\nb/c/"}, false},
		{"sed", []string{"y/a\nw x\n/b/"}, false},
		{"sed", []string{"a\\", "w x", "p"}, false},
		{"sed", []string{":a;N;$!ba;s/\\n/ /g"}, true},
		{"sed", []string{":a", "N", "$!ba", "s/a\\\nb/c/"}, true},
		{"sed", []string{"/x/{n;b end\n}; :end"}, true},
		{"sed", []string{"1i\\", "text", "p"}, true},
	} {
		var r reading
		for _, part := range c.parts {
			r.Options = append(r.Options, option{Name: "--expression", Value: proposal.Word{Value: part, Static: true}})
		}
		if got := ScriptOf(c.tool, r, false); got.Plain != c.plain {
			t.Errorf("%s %q: %+v", c.tool, c.parts, got)
		}
	}
}
