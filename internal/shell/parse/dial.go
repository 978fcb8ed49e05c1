// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bash itself connects to a host if a redirection names /dev/tcp/host/port or
// /dev/udp/host/port; no program starts. So a target that is known only at run time
// must be proven not to begin like that.

var networkFolders = []string{"/dev/tcp/", "/dev/udp/"}

// dialLeads are the prefixes that a word may have, as long as it may still become a
// network name. An empty list means that it cannot.
type dialLeads []string

// recordTarget records a redirection whose file is known only at run time.
func (w *walker) recordTarget(word *syntax.Word, value proposal.Word, span proposal.Span) {
	if value.Static {
		return
	}
	w.addDoubt(unknownNetwork, span, func() bool { return !w.mayDial(word) })
}

func (w *walker) mayDial(word *syntax.Word) bool {
	if words := w.expandBraces(word); hasBrace(word) && len(words) != 1 {
		return true // empty words are dropped, so one may remain
	}
	all, ok := w.followLead(dialLeads{""}, word.Parts, &dialTrail{})
	return !ok || all.hasNetworkDirectory()
}

// hasNetworkDirectory reports whether one of from is a network directory, whatever follows.
func (from dialLeads) hasNetworkDirectory() bool {
	return slices.ContainsFunc(from, func(lead string) bool { return slices.Contains(networkFolders, lead) })
}

// A dialTrail is what lead has seen while following the values of variables.
type dialTrail struct {
	inside map[string]bool // variables whose values are being followed
	loose  bool            // some were split and expanded to file names
	every  dialLeads       // each lead on the way, not only the final ones
}

// followLead follows parts after each of from. It reports false if they may become
// anything.
func (w *walker) followLead(from dialLeads, parts []syntax.WordPart, t *dialTrail) (dialLeads, bool) {
	for i, part := range parts {
		next, ok := w.leadPart(from, part, i == 0, t)
		if !ok || len(next) == 0 {
			return nil, ok
		}
		from = next
	}
	return from, true
}

func (w *walker) leadPart(from dialLeads, part syntax.WordPart, first bool, t *dialTrail) (dialLeads, bool) {
	if from.hasNetworkDirectory() {
		return from, true
	}
	switch part := part.(type) {
	case *syntax.Lit:
		return w.leadLiteral(from, part.Value, first, t)
	case *syntax.SglQuoted:
		text, ok := part.Value, true
		if part.Dollar {
			text, ok = ansiQuoted(part.Value)
		}
		return from.withText(text, t), ok && t.isNotPattern(text)
	case *syntax.DblQuoted:
		value, _ := literalWord(&syntax.Word{Parts: []syntax.WordPart{part}}, readWord)
		if value.Static {
			return from.withText(value.Value, t), t.isNotPattern(value.Value)
		}
		return w.leadQuoted(from, part, t)
	case *syntax.ArithmExp, *syntax.ProcSubst: // a number, /dev/fd/63
		return nil, true
	case *syntax.ParamExp:
		return w.leadParam(from, part, t)
	case *syntax.CmdSubst:
		return w.leadOutput(from, part)
	}
	return nil, false
}

func (w *walker) leadQuoted(from dialLeads, quoted *syntax.DblQuoted, t *dialTrail) (dialLeads, bool) {
	for _, part := range quoted.Parts {
		ok := !quoted.Dollar
		if lit, is := part.(*syntax.Lit); is {
			q := quoteRemover{static: true}
			q.addEscaped(lit.Value, "$`\"\\")
			from, ok = from.withText(q.text.String(), t), ok && t.isNotPattern(q.text.String())
		} else if ok {
			from, ok = w.leadPart(from, part, false, t)
		}
		if !ok || len(from) == 0 {
			return nil, ok
		}
	}
	return from, true
}

// leadLiteral follows unquoted text. A pattern that does not begin with a slash
// expands only to names that do not either. No pattern matches a network name, since
// no such file exists.
func (w *walker) leadLiteral(from dialLeads, text string, first bool, t *dialTrail) (dialLeads, bool) {
	if first && strings.HasPrefix(text, "~") {
		if text != "~" && text[1] != '/' {
			return nil, false
		}
		home := &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: "HOME"}}
		from, ok := w.leadParam(from, home, t)
		return from.withText(text[1:], t), ok
	}
	for i := 0; i < len(text) && len(from) > 0 && !from.hasNetworkDirectory(); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i++; i < len(text) && text[i] != '\n' {
				from = from.withText(text[i:i+1], t)
			}
		case strings.IndexByte("*?[", c) >= 0:
			if t.inside == nil || t.loose {
				return nil, !t.loose
			}
			return from.withName(), !strings.Contains(text, "/") || len(from) == 1 && from[0] == ""
		default:
			from = from.withText(text[i:i+1], t)
		}
	}
	return from, true
}

// isNotPattern reports whether text is not a pattern that file names may have replaced.
func (t *dialTrail) isNotPattern(text string) bool {
	return !t.loose || !strings.ContainsAny(text, `*?[\`)
}

// withText returns from with text after each lead, without those that can no longer
// become a network name. Split text begins again after each blank.
func (from dialLeads) withText(text string, t *dialTrail) dialLeads {
	var out dialLeads
	if blank := strings.IndexAny(text, " \t\n"); t.loose && blank >= 0 {
		out = dialLeads{""}.withText(text[blank+1:], t)
	}
	for _, lead := range from {
		for _, folder := range networkFolders {
			whole := lead + text
			if t.inside != nil && lead == "" { // leading blanks are dropped
				whole = strings.TrimLeft(whole, " \t\n")
			}
			fits := commonPrefix(whole, folder)
			for n := range fits {
				t.every = append(t.every, fits[:n+1])
			}
			if (fits == whole || fits == folder) && !slices.Contains(out, fits) {
				out = append(out, fits)
			}
		}
	}
	return out
}

// withName returns from with a name, which contains no slash, after each lead.
func (from dialLeads) withName() dialLeads {
	var out dialLeads
	for _, lead := range from {
		for _, folder := range networkFolders {
			rest, ok := strings.CutPrefix(folder, lead)
			if slash := strings.IndexByte(rest, '/'); ok && slash > 0 {
				for n := range slash + 1 {
					out = append(out, lead+rest[:n])
				}
			}
		}
	}
	return out
}

// commonPrefix returns the common prefix of a and b.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// leadParam follows a variable. An unset variable is empty.
func (w *walker) leadParam(from dialLeads, exp *syntax.ParamExp, t *dialTrail) (dialLeads, bool) {
	if exp.Length {
		return nil, true
	}
	if exp.Excl || exp.Slice != nil || exp.Repl != nil || exp.Names != 0 || exp.Param == nil {
		return nil, false
	}
	inner := &dialTrail{inside: t.inside, loose: t.loose}
	values, ok := w.leadValues(from, paramName(exp.Param.Value), inner)
	t.every = append(t.every, inner.every...)
	if exp.Exp == nil {
		return values, ok
	}
	switch exp.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		more, fine := w.followLead(from, exp.Exp.Word.Parts, t)
		return append(values, more...), ok && fine
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		more, ok := w.followLead(from, exp.Exp.Word.Parts, t)
		return append(slices.Clone(from), more...), ok
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return values, ok
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		// of an absolute name
		return slices.Concat(inner.every, from, from.withText("/", t), from.withText("/dev", t)), ok
	case syntax.RemLargePrefix:
		if exp.Exp.Word.Lit() == "*/" {
			return append(from.withName(), from...), true
		}
	}
	return nil, false
}

// leadValues follows everything that the text assigns to a variable.
func (w *walker) leadValues(from dialLeads, name string, t *dialTrail) (dialLeads, bool) {
	start := len(from) == 1 && from[0] == ""
	switch o := w.values[name]; {
	case name == "PWD" || name == "OLDPWD":
		return dialLeads{"", "/", "/dev"}, start
	case anyText(name) || t.inside[name]:
		return nil, false
	case o == nil:
		return from, true
	case o.outside:
		return nil, false
	default:
		return w.leadOrigin(from, name, o, t)
	}
}

func (w *walker) leadOrigin(from dialLeads, name string, o *origin, t *dialTrail) (dialLeads, bool) {
	outer := *t
	t.inside, t.loose = map[string]bool{name: true}, t.loose || o.loose
	for other := range outer.inside {
		t.inside[other] = true
	}
	defer func() { t.inside, t.loose = outer.inside, outer.loose }()
	out := slices.Clone(from)
	for _, value := range o.values {
		next, ok := w.followLead(from, value, t)
		if !ok || o.appended && len(next) > 0 && len(value) > 0 {
			return nil, false
		}
		out = append(out, next...)
	}
	return out, true
}

var (
	newFile = pattern.New(`^mktemp\n((-d|-q|-t|-p\n[^\n]*|--tmpdir(=[^\n]*)?|--directory|--suffix=[^\n]*|[^-\n][^\n]*)\n)*$`)
	folder  = pattern.New(`^(pwd|git\nrev-parse\n--show-toplevel)\n$`)
	// relativeNames are commands that print names of files of the working directory. One may have a blank and then a
	// network name, which is harmless without a network.
	relativeNames = pattern.New(`^(git\nls-files\n((-[cdmo]|--cached|--deleted|--modified|--others|--exclude-standard|--|[^-\n][^\n]*)\n)*` +
		`|git\ndiff\n((--cached|--staged|--diff-filter=\w+|--|[^-\n][^\n]*)\n)*--name-only\n((--cached|--staged|--diff-filter=\w+|--|[^-\n][^\n]*)\n)*` +
		`|find\n([\w.][^\n]*\n)+((-i?name|-type|-path|-maxdepth|-mindepth)\n[^\n]*\n|(-not|!|-o|-print)\n)*)$`)
)

// leadOutput follows the few programs that print names of existing files.
func (w *walker) leadOutput(from dialLeads, subst *syntax.CmdSubst) (dialLeads, bool) {
	if printsNumbers(subst.Stmts) && w.sets["PATH"] == 0 {
		return from, true
	}
	if len(subst.Stmts) != 1 || w.sets["PATH"] > 0 {
		return nil, false
	}
	if isBaseName(subst.Stmts[0]) {
		return append(append(from.withName(), from...), from.withText("/", &dialTrail{})...), true
	}
	if len(from) != 1 || from[0] != "" {
		return nil, false
	}
	switch words := plainWords(subst.Stmts[0]); {
	case w.offline && relativeNames.MatchString(words):
		return from, true
	case newFile.MatchString(words): // nothing can be created below a network directory
		return from, true
	case folder.MatchString(words):
		return dialLeads{"", "/", "/dev"}, true
	}
	return nil, false
}

// isBaseName reports whether stmt is basename, which prints names without a slash, or
// a single slash.
func isBaseName(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	return ok && hasOnlyOwnOutput(stmt) && len(call.Args) > 0 && call.Args[0].Lit() == "basename"
}
