// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Workspace is where a sandbox has the workspace, and what an organization says about files besides the lists here.
// Without Added the lists hold alone.
type Workspace struct {
	Path  string // absolute
	Added Places
}

// Places are patterns of files that are secret, or that control tools, besides those of this package. They only add.
type Places struct {
	secret, control []placePattern
}

// A placePattern has the parts of a path, in lower case; each is a pattern of path.Match. The first is empty for an
// absolute path. One that has only one part matches a name in any directory.
type placePattern []string

// Limits of what an organization adds.
const (
	maxPlaces       = 500
	maxPlaceLength  = 200
	maxAddedOptions = 64 << 10
)

// AddSecret adds patterns: "*.pem", a name in any directory; "deploy/keys", a path in the workspace; "/opt/acme", any
// other path. What is below such a directory is secret, too. Files of git and those that this package lists as control
// files stay what they are, so that naming one is an error.
func (p *Places) AddSecret(patterns []string) (err error) {
	for _, text := range patterns {
		if gitPath(text) || isControlFile(text) {
			return fmt.Errorf("%q: tools need to read it: hide it in the configuration of the repository (hide)", text)
		}
	}
	p.secret, err = addPatterns(p.secret, patterns)
	return err
}

// AddControl adds patterns, as AddSecret does; absolute ones are refused, since a control file is in the workspace.
func (p *Places) AddControl(patterns []string) (err error) {
	for _, text := range patterns {
		if strings.HasPrefix(text, "/") {
			return fmt.Errorf("%q: a control file is in the workspace: write its path from there", text)
		}
	}
	p.control, err = addPatterns(p.control, patterns)
	return err
}

func addPatterns(to []placePattern, patterns []string) ([]placePattern, error) {
	if len(to)+len(patterns) > maxPlaces {
		return nil, fmt.Errorf("there are more than %d patterns", maxPlaces)
	}
	to = slices.Clone(to)
	for _, text := range patterns {
		if err := checkPattern(text); err != nil {
			return nil, fmt.Errorf("%.40q: %w", text, err)
		}
		to = append(to, strings.Split(strings.ToLower(text), "/"))
	}
	return to, nil
}

func checkPattern(text string) error {
	var err error
	for part := range strings.SplitSeq(text, "/") { // one that is malformed would match nothing, without a word
		if _, bad := path.Match(part, ""); bad != nil {
			err = bad
		}
	}
	switch {
	case text == "" || text == "/" || len(text) > maxPlaceLength:
		return fmt.Errorf("write a name or a path of 1 to %d bytes", maxPlaceLength)
	case err != nil:
		return errors.New("this is no pattern: a [ has no ], or a \\ is at the end")
	case path.Clean(text) != text || text == "." || strings.HasPrefix(text, ".."):
		return fmt.Errorf("write it without ., .., // and a slash at its end")
	case strings.HasPrefix(text+"/", "/workspace/") || strings.HasPrefix(text+"/", userHome+"/"):
		return errors.New("write a path in the workspace without the workspace")
	case strings.Trim(text, "*?[]^-/") == "":
		return errors.New("this matches every name: write a part of the names")
	}
	return nil
}

// matches reports whether clean, or a directory that it is below, matches. rel is its path in the workspace, or "".
func (p placePattern) matches(clean, rel string) bool {
	parts := strings.Split(strings.ToLower(clean), "/")
	if len(p) == 1 {
		return slices.ContainsFunc(parts, func(part string) bool { return matchesPart(p[0], part) })
	}
	if p[0] != "" {
		parts = strings.Split(strings.ToLower(rel), "/")
	}
	for i, part := range p {
		if i >= len(parts) || !matchesPart(part, parts[i]) {
			return false
		}
	}
	return true
}

func matchesPart(pattern, name string) bool {
	is, _ := path.Match(pattern, name)
	return is
}

func matchesAny(patterns []placePattern, clean, rel string) bool {
	return slices.ContainsFunc(patterns, func(p placePattern) bool { return p.matches(clean, rel) })
}

// nearSecret reports whether an absolute word of which only the beginning is known may name a home directory or a
// secret.
func (ws Workspace) nearSecret(prefix string) bool {
	return nearSecret(prefix) || slices.ContainsFunc(ws.Added.secret, func(p placePattern) bool {
		begin := strings.ToLower(prefix)
		full := strings.Join(p, "/")
		if i := strings.IndexAny(full, `*?[\`); i >= 0 {
			full = full[:i]
			begin = begin[:min(i, len(begin))]
		}
		return p[0] == "" && strings.HasPrefix(full, begin)
	})
}

// AddOptions returns gs with the entries of text, in the form of options.txt, and the tools among them that are
// inspectors. known reports what the shipped policy knows: an entry for such a tool, or for one that gs has, could
// loosen what it denies, and is an error. So is a line that says what a tool starts or where it may connect.
func (gs Grammars) AddOptions(text string, known func(tool string) bool) (Grammars, []string, error) {
	if len(text) > maxAddedOptions {
		return nil, nil, fmt.Errorf("it has more than %d KiB", maxAddedOptions>>10)
	}
	if err := checkAddedLines(text); err != nil {
		return nil, nil, err
	}
	added, err := readEntries(text)
	if err != nil {
		return nil, nil, err
	}
	all := maps.Clone(gs)
	var inspectors []string
	for _, name := range slices.Sorted(maps.Keys(added)) {
		tool, sub, _ := strings.Cut(name, " ")
		switch {
		case gs[tool] != nil || known(tool) || isListed(tool):
			return nil, nil, fmt.Errorf("policy knows %s already: an entry could loosen what it denies", tool)
		case sub != "" && (added[tool] == nil || !added[tool].sub):
			return nil, nil, fmt.Errorf("%q has options of a subcommand: write an entry \"%s = gnu sub\", too", name, tool)
		case added[name].inspector && sub == "":
			inspectors = append(inspectors, name)
		case added[name].inspector:
			return nil, nil, fmt.Errorf("%q: only a whole tool can be an inspector", name)
		}
		all[name] = added[name]
	}
	return all, inspectors, nil
}

// isListed reports whether options.txt has tool in other places than its entries.
func isListed(tool string) bool {
	children, _ := shippedChildren()
	_, starts := children[tool]
	return starts || mustRead(loopbackTables)[tool] != nil || mustRead(hostTables)[tool] != nil
}

// checkAddedLines refuses lines that readEntries accepts of the shipped options.txt only.
func checkAddedLines(text string) error {
	for n, line := range strings.Split(text, "\n") {
		if err := checkAddedLine(line); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return nil
}

// addedWords are the words of an entry's first line.
var addedWords = []string{styleGNU, stylePOSIX, styleSingle, styleMixed, styleFree,
	"open", "sub", "wary", "inspector", "writes"}

func checkAddedLine(line string) error {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "" || trimmed[0] == '#':
		return nil
	case isChildLine(line) || isPlaceLine(line):
		return errors.New("only entries \"tool = style\" and their options are supported here")
	case line[0] == ' ' || line[0] == '\t':
		for token := range strings.FieldsSeq(trimmed) {
			if err := checkAddedOption(token); err != nil {
				return err
			}
		}
		return nil
	}
	names, header, ok := strings.Cut(trimmed, " = ")
	words := strings.Fields(header)
	if !ok || len(words) == 0 || !slices.Contains(addedWords[:5], words[0]) {
		return fmt.Errorf("want tool[, tool] = style, with one of the styles %s", strings.Join(addedWords[:5], ", "))
	}
	for _, word := range words[1:] {
		if !slices.Contains(addedWords[5:], strings.TrimRight(word, "123456789")) {
			return fmt.Errorf("unsupported %q: supported are %s", word, strings.Join(addedWords[5:], ", "))
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); !addedName.MatchString(name) {
			return fmt.Errorf("%.40q is no name of a tool, or of a tool and its subcommand", name)
		}
	}
	return nil
}

func checkAddedOption(token string) error {
	if strings.HasSuffix(token, string(markTool)) {
		return fmt.Errorf("unsupported %q: an option cannot name a tool here", token)
	}
	for name := range strings.SplitSeq(strings.TrimRight(token, "!>^.$:?"), ",") {
		if len(name) < 2 || name[0] != '-' || strings.Trim(name, "-") == "" || strings.ContainsAny(name, "=") {
			return fmt.Errorf("%.40q is no option: write -o, --output: or --output:>", token)
		}
	}
	return nil
}
