// SPDX-License-Identifier: Apache-2.0

// Package snippet reads the Python, JavaScript and TypeScript in a Proposal's text.
// It reports what the code imports, what it can do and where it hides what it does.
//
// It promises to end, in bounded memory, for any text; to report if it has not
// understood all of the text; and to return the same result for the same text. It
// runs none of the text and reads no file.
//
// The result is advice, never the security boundary. Static reading cannot see
// through a name assembled at run time, unpickled data, a file that the snippet
// writes and then runs, or a module of the workspace. The sandbox confines what a
// snippet does; this package shows people early what it looks like.
//
// Modules are known from a list of the language's own library. Every other module is
// project-code: it can do whatever the repository's tests can do.
//
// Shell text in a here-document is not a snippet: internal/shell/parse reads it as commands.
package snippet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/shell/snippet/grammar"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxSize is the longest text that is read.
const MaxSize = grammar.MaxText

// Limits on what is found and followed.
const (
	maxFindings = 100
	maxImports  = 200
	maxName     = 120
	maxNested   = 3   // code in strings in code
	maxInner    = 64  // strings containing code in one snippet
	maxFollow   = 40  // names within names
	maxConstant = 400 // bytes of an assembled string
)

// Analyze reads text as language: "python", "javascript" or "typescript". It never
// fails and never panics; every doubt is a finding with Complete false.
func Analyze(language, text string) proposal.Snippet {
	return analyzeText(language, text, 0, new(int))
}

// analyzeText is Analyze, with the number of strings containing code that were already
// read.
func analyzeText(language, text string, depth int, inner *int) (s proposal.Snippet) {
	text = separateLines(text)
	r := newReader(language, text, depth)
	r.inner = inner
	defer func() {
		if recover() != nil {
			r.addDoubt("unreadable", 0, len(text))
		}
		s = r.toSnippet()
	}()
	if !r.checkText() {
		return
	}
	tree, err := grammar.Parse(context.Background(), language, text)
	if err != nil {
		r.addDoubt(codeOf(err), 0, 0)
		return
	}
	r.checkTree(tree)
	if language == "python" {
		(&pythonReader{reader: r}).readTree(tree)
	} else {
		(&scriptReader{reader: r}).readTree(tree)
	}
	return
}

// separateLines returns text with a line feed for each carriage return that is not before one. Interpreters end
// a line, and with it a comment, at both; the grammars only at a line feed.
func separateLines(text string) string {
	if !strings.Contains(text, "\r") {
		return text
	}
	lines := []byte(text)
	for i, c := range lines {
		if c == '\r' && (i+1 == len(lines) || lines[i+1] != '\n') {
			lines[i] = '\n'
		}
	}
	return string(lines)
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, grammar.ErrTooLarge):
		return "too-large"
	case errors.Is(err, grammar.ErrTooLong):
		return "too-long"
	}
	return "unreadable"
}

// messages describe each finding. They are fixed texts and never quote the snippet.
var messages = map[string]string{
	"too-large":        "the snippet is too long or nested too deeply",
	"too-long":         "parsing the snippet takes too long",
	"unreadable":       "the snippet cannot be parsed",
	"unknown-language": "snippets in this language are not supported",
	"not-understood":   "this syntax is not supported",
	"encoding":         "the text is not plain UTF-8, so others may see different code",
	"hidden-character": "an invisible character, or one that changes the direction of the text",
	"odd-name":         "the interpreter treats this name as another one",
	"dynamic-text":     "part of the snippet is known only when it runs",

	"dynamic-code":          "runs text as code that is not written here",
	"decoded-code":          "runs text as code that is decoded first",
	"fetched-code":          "runs text as code that is fetched first",
	"dynamic-import":        "imports a module whose name is known only when it runs",
	"dynamic-attribute":     "uses an attribute of a module whose name is known only when it runs",
	"built-name":            "builds a name at run time that could be written literally",
	"interpreter-internals": "bypasses the language's names through the interpreter's internals",
	"native-code":           "calls machine code or opens the interpreter's memory",
	"remote-host":           "names a host outside the sandbox",
}

// A reader collects the findings in one text.
type reader struct {
	language string
	text     string
	depth    int
	inner    *int // strings containing code that were read, at all depths
	complete bool
	imports  map[string]bool
	can      map[string]bool
	findings []proposal.SnippetFinding
	seen     map[proposal.SnippetFinding]bool
	names    map[string]string // the snippet's own names, and the paths that they refer to
	put      map[string]bool   // names of assembled strings
	lines    []int             // start of each line
}

func newReader(language, text string, depth int) *reader {
	r := &reader{language: language, text: text, depth: depth, complete: true, imports: map[string]bool{},
		can: map[string]bool{}, seen: map[proposal.SnippetFinding]bool{}, names: map[string]string{},
		put: map[string]bool{}, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	return r
}

func (r *reader) toSnippet() proposal.Snippet {
	s := proposal.Snippet{Language: r.language, Size: len(r.text), Complete: r.complete,
		Findings: []proposal.SnippetFinding{}}
	s.Imports, s.Capabilities = sortedNames(r.imports), sortedNames(r.can)
	s.Findings = append(s.Findings, r.findings...)
	slices.SortStableFunc(s.Findings, func(a, b proposal.SnippetFinding) int { return a.Span.Start - b.Span.Start })
	return s
}

func sortedNames(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for word := range set {
		list = append(list, word)
	}
	slices.Sort(list)
	return list
}

func (r *reader) addFinding(code string, start, end int) {
	f := proposal.SnippetFinding{Code: code, Message: messages[code], Span: r.spanOf(start, end)}
	if len(r.findings) < maxFindings && !r.seen[f] {
		r.seen[f] = true
		r.findings = append(r.findings, f)
	}
}

// addDoubt adds a finding which means that others may be missing.
func (r *reader) addDoubt(code string, start, end int) {
	r.complete = false
	r.addFinding(code, start, end)
}

func (r *reader) findAt(code string, n grammar.Node) {
	start, end := n.Span()
	r.addFinding(code, start, end)
}

func (r *reader) spanOf(start, end int) proposal.Span {
	line, found := slices.BinarySearch(r.lines, start)
	if !found {
		line--
	}
	return proposal.Span{Start: start, End: end, Line: line + 1, Col: start - r.lines[line] + 1}
}

func (r *reader) addCapabilities(words ...string) {
	for _, word := range words {
		if word != "none" {
			r.can[word] = true
		}
	}
}

// recordModule records a module, if its name is fit to be listed.
func (r *reader) recordModule(module string) {
	if len(module) > maxName || strings.ContainsFunc(module, func(c rune) bool { return !unicode.IsPrint(c) }) {
		r.addCapabilities(canProjectCode)
		return
	}
	if len(r.imports) < maxImports {
		r.imports[module] = true
	} else if !r.imports[module] {
		r.addDoubt("too-large", 0, 0)
	}
}

// cookie matches PEP 263's declaration of a file's encoding.
var cookie = pattern.New(`^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)

// checkText checks the bytes. It reports whether a parser may read them.
func (r *reader) checkText() bool {
	if !grammar.HasGrammar(r.language) {
		r.addDoubt("unknown-language", 0, 0)
		return false
	}
	if len(r.text) > MaxSize {
		r.addDoubt("too-large", 0, 0)
		return false
	}
	if !utf8.ValidString(r.text) {
		r.addDoubt("encoding", 0, len(r.text))
		return false
	}
	if r.language == "python" {
		r.checkCookie()
	}
	for i, c := range r.text {
		if isHiddenCharacter(c) {
			r.addFinding("hidden-character", i, i+utf8.RuneLen(c))
		}
	}
	return true
}

func (r *reader) checkCookie() {
	at := 0
	for range 2 {
		line, rest, _ := strings.Cut(r.text[at:], "\n")
		if m := cookie.FindStringSubmatch(line); m != nil {
			switch strings.ReplaceAll(strings.ToLower(m[1]), "_", "-") {
			case "utf-8", "utf8", "ascii", "us-ascii", "utf-8-sig":
			default:
				r.addDoubt("encoding", at, at+len(line))
			}
		}
		at = len(r.text) - len(rest)
	}
}

// isHiddenCharacter reports characters that no snippet needs and that make the displayed text
// differ from the text that is read. The zero-width joiners of emoji are not among
// them.
func isHiddenCharacter(c rune) bool {
	switch {
	case c == '\n' || c == '\t' || c == '\r' || c == '\f':
		return false
	case c < ' ' || c == 0x7f || c == 0x200b || c == 0x2060 || c == 0xfeff || c >= 0x202a && c <= 0x202e ||
		c >= 0x2066 && c <= 0x2069:
		return true
	}
	return c >= 0xe0000 && c <= 0xe007f || unicode.Is(unicode.Co, c)
}

// checkTree looks for text that the grammar does not know, and for disguised names.
func (r *reader) checkTree(tree *grammar.Tree) {
	wrong := 0
	for n := range tree.All() {
		start, end := n.Span()
		if n.IsWrong() && wrong < 3 {
			wrong++
			r.addDoubt("not-understood", start, min(end, start+80))
		}
		if strings.HasSuffix(n.Kind(), "identifier") && r.isDisguisedName(n.Text()) {
			r.addFinding("odd-name", start, end)
		}
	}
	if tree.Broken && wrong == 0 {
		r.addDoubt("not-understood", 0, 0)
	}
}

// isDisguisedName reports whether the interpreter reads name differently: Python normalizes
// names to NFKC, JavaScript decodes escapes in them.
func (r *reader) isDisguisedName(name string) bool {
	if r.language == "python" {
		return !norm.NFKC.IsNormalString(name)
	}
	return strings.Contains(name, `\u`)
}

// readNested reads code in a string of the snippet, at n, and reports whether its syntax was understood.
func (r *reader) readNested(language, text string, n grammar.Node) (understood bool) {
	if r.depth+1 >= maxNested {
		r.findAt("dynamic-code", n)
		return true
	}
	if *r.inner++; *r.inner > maxInner {
		r.addDoubt("too-large", 0, 0)
		return true
	}
	inner := analyzeText(language, text, r.depth+1, r.inner)
	start, end := n.Span()
	for _, f := range inner.Findings {
		if f.Code != "not-understood" { // then it is a SyntaxError for the interpreter too
			r.addFinding(f.Code, start, end)
		}
	}
	for _, module := range inner.Imports {
		r.recordModule(module)
	}
	r.addCapabilities(inner.Capabilities...)
	return !hasFinding(inner, "not-understood")
}
