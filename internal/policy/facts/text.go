// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Placed is a path and the place that it names.
type Placed struct {
	Value string `json:"value"`              // as written
	Place string `json:"place" enum:"place"` // where the value leads if it is a path
}

// homePath does not match ~name without a slash, which tools use for "not" and for an
// ancestor, except for root and runner.
var homePath = pattern.New(`(?:^|[\s:<>("']|\S=)(?:~(root|runner|[\w.+-]+/)?|"?\$\{?HOME([:%#/,^@][^}]*)?\}?"?)((?:/[^\s;|&<>()'"]*)?)(?:[\s;|&<>()'"/.*?\[]|$)`)

// ownHome matches HOME="$HOME", which is no use of the directory.
var ownHome = pattern.New(`(^|\s)HOME=(?:"\$HOME"|"\$\{HOME\}"|\$HOME|\$\{HOME\})(?:\s|;|&|$)`)

// HomesIn finds the paths in the home directory that the text at span names. A word does
// not show them: it has only the text before the tilde.
func HomesIn(text string, span proposal.Span, added Places) []Placed {
	if span.Start >= 0 && span.Start < span.End && span.End <= len(text) {
		text = text[span.Start:span.End]
	}
	if !strings.ContainsAny(text, "~$") {
		return nil
	}
	text = ownHome.ReplaceAllString(removeSingleQuoted(text), "$1")
	var homes []Placed
	for _, m := range homePath.FindAllStringSubmatch(text, -1) {
		home, name := "/home/fumehood", strings.TrimSuffix(m[1], "/")
		if name == "root" {
			home = "/root"
		} else if name != "" {
			home = "/home/" + name
		}
		rest := m[3]
		if rest == "" && strings.HasSuffix(m[1], "/") {
			rest = "/"
		}
		written := "~" + name
		if m[2] != "" {
			written = "${HOME" + m[2] + "}" // whatever that makes of it
		}
		homes = append(homes, Placed{written + rest, placeOf(path.Clean(home+rest), Workspace{Added: added})})
	}
	return homes
}

// removeSingleQuoted removes text in single quotes, where nothing is expanded. A text in which quotes
// may be nested is not changed.
func removeSingleQuoted(text string) string {
	if !strings.Contains(text, "'") || strings.Contains(text, "$(") || strings.ContainsAny(text, "`") ||
		strings.Contains(text, "<<") || strings.Contains(text, "$'") {
		return text
	}
	var kept strings.Builder
	double, single := false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && !single && i+1 < len(text):
			kept.WriteByte(c)
			i++
			c = text[i]
		case c == '"' && !single:
			double = !double
		case c == '\'' && !double:
			single = !single
		case single:
			continue
		}
		kept.WriteByte(c)
	}
	return kept.String()
}

var credentialName = pattern.New(`\$\{?[!#]?([A-Z][A-Z0-9_]*)`)

var credentialWord = pattern.New(`(^|_)(TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|CREDENTIALS?|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|SIGNING_KEY|PAT|AUTH)(_|$)`)

// CredentialsIn finds the variables that the text at span expands and that have the names
// of credentials.
func CredentialsIn(text string, span proposal.Span) []string {
	if span.Start >= 0 && span.Start < span.End && span.End <= len(text) {
		text = text[span.Start:span.End]
	}
	var names []string
	for _, m := range credentialName.FindAllStringSubmatch(text, -1) {
		if credentialWord.MatchString(m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// AssignedPlace is the place of a value that looks like a path, or that would lead to a control file or to
// git's own, also after a colon; any other value is a word.
func AssignedPlace(w proposal.Word, cwds []string, workspace Workspace) string {
	if isNewDirectory(w) {
		return "tmp"
	}
	if keepsHome(w) {
		return "home"
	}
	for part := range strings.SplitSeq(w.Value, ":") {
		if place := ResolvePlace(part, w.Static, cwds, workspace); place == "git" || place == "control" {
			return place
		}
	}
	if !strings.HasPrefix(w.Value, "/") && !strings.HasPrefix(w.Value, "../") {
		return "workspace"
	}
	return ResolvePlace(w.Value, w.Static, cwds, workspace)
}
