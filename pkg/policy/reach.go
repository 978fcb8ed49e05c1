// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// effect adds what the option at i of r does.
func (in *commandInput) effect(r reading, i int) {
	o := in.Options[i]
	switch r.options[i].effect {
	case markRuns:
		in.Effects = append(in.Effects, effectInput{"run", o.Name, o.Value, o.Static, o.Place})
	case markWrites:
		if o.Value != "-" && (o.Value != "" || !o.Static) {
			in.Effects = append(in.Effects, effectInput{"write", o.Name, o.Value, o.Static, o.Place})
		}
	case markCode, markRest:
		in.Effects = append(in.Effects, effectInput{"code", o.Name, o.Value, o.Static, o.Place})
	}
}

// writesOperand reports whether the operand at i is written.
func (r *reading) writesOperand(i int) bool {
	return r.changes || r.writes > 0 && i+1 >= r.writes
}

// valuesOf splits a value as tools split their lists.
func valuesOf(value string) []string {
	return strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(", \t\n'\"", c) })
}

var (
	pathStart = regexp.MustCompile(`(?:^|[=:,;@"'])((?:~|/|\.\./)[^=:,;@"' ]*)|^-[A-Za-z]((?:~|/|\.\./)[^=:,;@"' ]*)`)
	address   = regexp.MustCompile(`(^|[=:@])(https?|ftp|ssh|git|oci|data|file)(\+\w+)?:(//|/|text/)`)
	nameEnd   = regexp.MustCompile(`[=:/~].*|\.\./.*`)
)

// reaches are the paths in args, wherever in a word they begin, but for the text of
// programs.
func (e *Engine) reaches(args []proposal.Word, r reading, cwds []string) []pathInput {
	var paths []pathInput
	for i, w := range args {
		if !strings.ContainsAny(w.Value, "/~") || r.isCode(w) {
			continue
		}
		for _, m := range pathStart.FindAllStringSubmatch(w.Value, -1) {
			value := m[1] + m[2]
			paths = append(paths, pathInput{givenTo(args, i), value, place(value, true, cwds, e.workspace)})
		}
	}
	return paths
}

// givenTo is the option that the path in the word at i is given to.
func givenTo(args []proposal.Word, i int) string {
	if strings.HasPrefix(args[i].Value, "-") {
		return nameEnd.ReplaceAllString(args[i].Value, "")
	}
	if i > 0 && strings.HasPrefix(args[i-1].Value, "-") && !strings.Contains(args[i-1].Value, "=") {
		return nameEnd.ReplaceAllString(args[i-1].Value, "")
	}
	return ""
}

// isCode reports whether w is the text of a program.
func (r *reading) isCode(w proposal.Word) bool {
	for _, o := range r.options {
		if (o.effect == markCode || o.effect == markRest) && o.value.Value == w.Value {
			return true
		}
	}
	return false
}

func urlsIn(args []proposal.Word) []string {
	var urls []string
	for _, w := range args {
		if strings.Contains(w.Value, ":") && address.MatchString(w.Value) {
			urls = append(urls, w.Value)
		}
	}
	return urls
}
