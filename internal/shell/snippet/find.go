// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxSnippets is how many snippets of one Proposal are read.
const maxSnippets = 32

// ReadSnippets reads the snippets of p, in the order of its commands. a is the analysis of p.
func ReadSnippets(p proposal.Proposal, a proposal.Analysis) []proposal.Snippet {
	var all []proposal.Snippet
	lost := false // one text used up the whole time limit
	for _, c := range a.Commands {
		source, ok := sourceIn(p, c)
		if !ok {
			continue
		}
		var s proposal.Snippet
		switch {
		case len(all) == maxSnippets:
			s = unreadSnippet(source, "too-large")
		case len(all) > maxSnippets:
			return all
		case lost:
			s = unreadSnippet(source, "too-long")
		case !source.known:
			s = unreadSnippet(source, "dynamic-text")
		default:
			s = readSource(source)
			lost = hasFinding(s, "too-long")
		}
		s.Command, s.Via = c.Index, source.via
		s.SyntaxOnly = p.Context != "" && !p.RunsShell() && hasFinding(s, "not-understood")
		all = append(all, s)
	}
	return all
}

// readSource reads source. Text that is not JavaScript is read as TypeScript, as Node does.
func readSource(source source) proposal.Snippet {
	s := Analyze(source.language, source.text)
	if source.language != "javascript" || !hasFinding(s, "not-understood") {
		return s
	}
	if typed := Analyze("typescript", source.text); typed.Complete {
		return typed
	}
	return s
}

func hasFinding(s proposal.Snippet, code string) bool {
	return slices.ContainsFunc(s.Findings, func(f proposal.SnippetFinding) bool { return f.Code == code })
}

// unreadSnippet returns the result for a snippet that was not read.
func unreadSnippet(source source, code string) proposal.Snippet {
	r := newReader(source.language, source.text, 0)
	r.addDoubt(code, 0, 0)
	return r.toSnippet()
}

// A source is the text of a snippet, or what is known about it.
type source struct {
	language, via, text string
	known               bool
}

// An interpreter describes how a program takes code as an argument.
type interpreter struct {
	language string
	flags    string          // letters that take the code
	long     map[string]bool // long options that take it
	values   string          // letters that take another value
	worded   map[string]bool // long options whose value is the next word
}

var nodeLong = map[string]bool{"--eval": true, "--print": true}

var nodeWorded = map[string]bool{
	"--require": true, "--import": true, "--loader": true, "--experimental-loader": true, "--conditions": true, "--input-type": true,
	"--title": true, "--disable-warning": true, "--icu-data-dir": true, "--env-file": true, "--env-file-if-exists": true, "--stack-trace-limit": true,
	"--unhandled-rejections": true, "--dns-result-order": true, "--experimental-default-type": true, "--preload": true,
}

var interpreters = map[string]interpreter{
	"python":  {language: "python", flags: "c", values: "WXm", worded: map[string]bool{"--check-hash-based-pycs": true}},
	"node":    {language: "javascript", flags: "ep", long: nodeLong, values: "rC", worded: nodeWorded},
	"bun":     {language: "typescript", flags: "ep", long: nodeLong, values: "r", worded: nodeWorded},
	"deno":    {language: "typescript"},
	"tsx":     {language: "typescript", flags: "ep", long: nodeLong, values: "r", worded: nodeWorded},
	"ts-node": {language: "typescript", flags: "ep", long: nodeLong, values: "rOPC"},
}

var numbered = pattern.New(`^(python|pypy|node)(js)?[-0-9.]*$`)

// interpreterOf returns the interpreter that c starts, by its name alone.
func interpreterOf(c proposal.Command) (interpreter, bool) {
	name := path.Base(c.Program)
	if m := numbered.FindStringSubmatch(name); m != nil {
		name = strings.Replace(m[1], "pypy", "python", 1)
	}
	i, ok := interpreters[name]
	return i, ok && !c.Function
}

// sourceIn finds the code in c.
func sourceIn(p proposal.Proposal, c proposal.Command) (source, bool) {
	i, ok := interpreterOf(c)
	if !ok || len(c.Args) == 0 {
		return source{}, false
	}
	s, found, file := i.inArguments(c.Args[1:])
	switch {
	case found:
		if p.Form() == "code" {
			s.via = "code"
		}
		return s, true
	case file:
		return source{}, false
	}
	return i.onStdin(c)
}

// inArguments looks for an option with code. It reports whether there is one, and
// whether the program comes from somewhere other than standard input.
func (i interpreter) inArguments(args []proposal.Word) (s source, found, file bool) {
	for at := 0; at < len(args); at++ {
		word := args[at]
		switch {
		case i.language == "typescript" && i.flags == "" && at == 0:
			if word.Value != "eval" {
				return s, false, true
			}
			for _, code := range args[at+1:] {
				if !strings.HasPrefix(code.Value, "-") {
					return i.newSource("-e", code), true, false
				}
			}
			return s, false, true
		case word.Value == "-" && word.Static:
			return s, false, false
		case !strings.HasPrefix(word.Value, "-"):
			return s, false, true
		case i.long[word.Value]:
			if at+1 < len(args) {
				return i.newSource("-e", args[at+1]), true, false
			}
		case i.worded[word.Value]:
			if at+1 < len(args) && !strings.HasPrefix(args[at+1].Value, "-") {
				at++
			}
		case strings.HasPrefix(word.Value, "--"):
			if name, value, ok := strings.Cut(word.Value, "="); ok && i.long[name] {
				word.Value = value
				return i.newSource("-e", word), true, false
			}
		default:
			done, skip := i.readCluster(args[at:], &s)
			if done {
				return s, s.via != "", s.via == ""
			}
			at += skip
		}
	}
	return s, false, false
}

// readCluster reads the letters after one dash: -c, -Ic, -cCODE, -Wx. It reports whether
// no later word can be code, and how many words it consumed.
func (i interpreter) readCluster(args []proposal.Word, s *source) (done bool, skip int) {
	word := args[0]
	for at := 1; at < len(word.Value); at++ {
		letter, rest := word.Value[at:at+1], word.Value[at+1:]
		switch {
		case strings.Contains(i.flags, letter) && i.language != "python" && rest != "" &&
			strings.Contains(i.flags+"i", rest):
			continue // -pe
		case strings.Contains(i.flags, letter):
			dash := "-" + map[bool]string{true: "c", false: "e"}[i.language == "python"]
			if i.language == "python" && rest != "" {
				word.Value = rest
				*s = i.newSource(dash, word)
			} else if len(args) > 1 {
				*s = i.newSource(dash, args[1])
			}
			return true, 0
		case letter == "m" && i.language == "python":
			return true, 0
		case strings.Contains(i.values, letter):
			if rest == "" {
				return false, 1
			}
			return false, 0
		}
	}
	return false, 0
}

func (i interpreter) newSource(via string, word proposal.Word) source {
	return source{language: i.language, via: via, text: word.Value, known: word.Static}
}

// onStdin reads a here-document or here-string that c reads as its program.
func (i interpreter) onStdin(c proposal.Command) (source, bool) {
	for at := len(c.Redirects) - 1; at >= 0; at-- {
		r := c.Redirects[at]
		if r.FD != 0 {
			continue
		}
		if r.Kind == "heredoc" || r.Kind == "herestring" {
			return i.newSource(r.Kind, r.Target), true
		}
		return source{}, false
	}
	return source{}, false
}
