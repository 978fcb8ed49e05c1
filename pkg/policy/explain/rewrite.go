// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Rewrite says how something that cannot be known before it runs is written plainly.
type Rewrite struct {
	Code  string `json:"code"`            // of the Unknown
	Hint  string `json:"hint"`            // in our words
	After string `json:"after,omitempty"` // the proposal's text written so, where it could be done and is allowed; untrusted
}

// A rewriting is one way of writing things plainly.
type rewriting struct {
	codes   []string // without "parse."
	hint    string
	pattern *regexp.Regexp // nil: there is only advice
	into    string
}

var rewritings = []rewriting{
	{[]string{"dynamic-program"}, "name the program itself: it is looked up all the same",
		regexp.MustCompile("\"?(?:\\$\\(|`)(?:which|command -v|type -p) ([\\w.+-]+)(?:\\)|`)\"?"), "$1"},
	{[]string{"dynamic-program", "dynamic-script"}, "propose each command by itself, or give names to xargs",
		regexp.MustCompile(`(?s)^for (\w+) in \$\(([^()]+)\);?\s*do (\w.*?)\s+["']?\$\{?(\w+)\}?["']?\s*;?\s*done$`), "$2 | xargs $3"},
	{[]string{"eval"}, "write the command that eval would run",
		regexp.MustCompile(`(?s)^eval ["']([^"'$` + "`" + `\\]+)["']$`), "$1"},
	{[]string{"shell-stdin"}, "write the commands that the shell would read",
		regexp.MustCompile(`(?s)^(?:echo|printf) (?:-[ne]+ )?["']([^"'$` + "`" + `\\]+)["'] \| (?:ba|da)?sh$`), "$1"},
	{[]string{"shell-stdin", "file-driven"}, "write the commands in the proposal itself, or as code with language bash", nil, ""},
	{[]string{"source"}, "run the file as a program of its own: its settings are not needed later, or set them in env",
		regexp.MustCompile(`^(?:source|\.) (?:\./)?([\w./-]+)$`), "bash $1"},
	{[]string{"dynamic-script"}, "write the script literally, in single quotes", nil, ""},
	{[]string{"hidden-evaluation"}, "compute with plain numbers, or in python3 as code with language python", nil, ""},
	{[]string{"too-long", "too-deep", "too-many"}, "propose its parts one after another, with needs between them", nil, ""},
	{[]string{"control-character", "invisible-character", "invalid-utf8"}, "give bytes that are no text to printf or python3 as escapes", nil, ""},
	{[]string{"written-script"}, "propose the script as code with language bash or python", nil, ""},
}

// rewritesOf lists the ways that fit the Unknowns, with what becomes of text.
func rewritesOf(text string, unknowns []proposal.Unknown) []Rewrite {
	var all []Rewrite
	for _, u := range unknowns {
		for _, r := range rewritings {
			if !slices.Contains(r.codes, strings.TrimPrefix(u.Code, "parse.")) {
				continue
			}
			after, fits := r.apply(strings.TrimSpace(text))
			if w := (Rewrite{u.Code, r.hint, after}); fits && !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// apply reports whether the way fits text at all: one with a pattern fits only what it
// matches.
func (r rewriting) apply(text string) (string, bool) {
	if r.pattern == nil {
		return "", true
	}
	if !r.sound(text) {
		return "", false
	}
	return strings.TrimSpace(r.pattern.ReplaceAllString(text, r.into)), true
}

// sound reports whether text matches, and where a variable is set and read that it is
// the same one.
func (r rewriting) sound(text string) bool {
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
