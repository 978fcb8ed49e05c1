// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Rewrite is a literal form of something that cannot be known before it runs.
type Rewrite struct {
	Code string `json:"code"` // of the Unknown
	Hint string `json:"hint"` // trusted text
	// the proposal's text in this form, if it could be written and is allowed; untrusted
	After string `json:"after,omitempty"`
}

// A rewriting is one way to write things literally.
type rewriting struct {
	codes   []string // without "parse."
	hint    string
	pattern *pattern.Pattern // nil: only the hint is given
	into    string
}

var rewritings = []rewriting{
	{[]string{"dynamic-program"}, "name the program directly: it is looked up all the same",
		pattern.New("\"?(?:\\$\\(|`)(?:which|command -v|type -p) ([\\w.+-]+)(?:\\)|`)\"?"), "$1"},
	{[]string{"dynamic-program", "dynamic-script"}, "propose each command separately, or pass names to xargs",
		pattern.New(`(?s)^for (\w+) in \$\(([^()]+)\);?\s*do (\w.*?)\s+["']?\$\{?(\w+)\}?["']?\s*;?\s*done$`),
		"$2 | xargs -r -n 1 $3"},
	{[]string{"eval"}, "write the command that eval would run",
		pattern.New(`(?s)^eval ["']([^"'$` + "`" + `\\]+)["']$`), "$1"},
	{[]string{"shell-stdin"}, "write the commands that the shell would read",
		pattern.New(`(?s)^(?:echo|printf) (?:-[ne]+ )?["']([^"'$%` + "`" + `\\]+)["'] \| (?:ba|da)?sh$`), "$1"},
	{[]string{"shell-stdin", "file-driven"}, "write the commands in the proposal, or as code with language bash", nil, ""},
	{[]string{"source"}, "run the file as a program, if later commands do not need its settings, or set them in env",
		pattern.New(`^(?:source|\.) (?:\./)?([\w./-]+)$`), "bash $1"},
	{[]string{"dynamic-script"}, "write the script after -c literally, in single quotes, or name its file", nil, ""},
	{[]string{"hidden-evaluation"}, "compute with plain numbers, or in python3 as code with language python", nil, ""},
	{[]string{"too-long", "too-deep", "too-many"}, "propose its parts separately, with needs between them", nil, ""},
	{[]string{"control-character", "invisible-character", "invalid-utf8"}, "pass bytes that are not text to printf or python3 as escapes", nil, ""},
	{[]string{"written-script"}, "propose the script as code with language bash or python", nil, ""},
}

// rewritesOf lists the rewritings for the Unknowns, applied to text.
func rewritesOf(text string, unknowns []proposal.Unknown) []Rewrite {
	var all []Rewrite
	for _, u := range unknowns {
		for _, r := range rewritings {
			if !slices.Contains(r.codes, strings.TrimPrefix(u.Code, "parse.")) {
				continue
			}
			after, fits := r.rewriteText(strings.TrimSpace(text))
			if w := (Rewrite{u.Code, r.hint, after}); fits && !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// rewriteText returns text rewritten, and whether the rewriting fits text: one with a pattern
// fits only text that matches.
func (r rewriting) rewriteText(text string) (string, bool) {
	if r.pattern == nil {
		return "", true
	}
	if !r.isSoundFor(text) {
		return "", false
	}
	return strings.TrimSpace(r.pattern.ReplaceAllString(text, r.into)), true
}

// isSoundFor reports whether text matches and, if it sets and reads a variable, whether that is
// the same one.
func (r rewriting) isSoundFor(text string) bool {
	m := r.pattern.FindStringSubmatch(text)
	switch {
	case m == nil:
		return false
	case strings.HasPrefix(r.pattern.String(), `(?s)^(\w+)=`):
		return m[1] == m[3]
	case strings.Contains(r.pattern.String(), `^for `):
		return m[1] == m[4] && !strings.Contains(m[3], "$")
	}
	return true
}
