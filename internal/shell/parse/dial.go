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

// leads are the prefixes that a word may have, as long as it may still become a
// network name. An empty list means that it cannot.
type leads []string

// target records a redirection whose file is known only at run time.
func (w *walker) target(word *syntax.Word, value proposal.Word, span proposal.Span) {
	if value.Static {
		return
	}
	w.doubt(unknownNetwork, span, func() bool { return !w.mayDial(word) })
}

func (w *walker) mayDial(word *syntax.Word) bool {
	if words := w.braces(word); hasBrace(word) && len(words) != 1 {
		return true // empty words are dropped, so one may remain
	}
	all, ok := w.lead(leads{""}, word.Parts, &trail{})
	return !ok || all.whole()
}

// whole reports whether one of from is a network directory, whatever follows.
func (from leads) whole() bool {
	return slices.ContainsFunc(from, func(lead string) bool { return slices.Contains(networkFolders, lead) })
}

// A trail is what lead has seen while following the values of variables.
type trail struct {
	inside map[string]bool // variables whose values are being followed
	loose  bool            // some were split and expanded to file names
	every  leads           // each lead on the way, not only the final ones
}

// lead follows parts after each of from. It reports false if they may become
// anything.
func (w *walker) lead(from leads, parts []syntax.WordPart, t *trail) (leads, bool) {
	for i, part := range parts {
		next, ok := w.leadPart(from, part, i == 0, t)
		if !ok || len(next) == 0 {
			return nil, ok
		}
		from = next
	}
	return from, true
}

func (w *walker) leadPart(from leads, part syntax.WordPart, first bool, t *trail) (leads, bool) {
	if from.whole() {
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
		return from.then(text, t), ok && t.tight(text)
	case *syntax.DblQuoted:
		value, _ := literal(&syntax.Word{Parts: []syntax.WordPart{part}}, readWord)
		if value.Static {
			return from.then(value.Value, t), t.tight(value.Value)
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

func (w *walker) leadQuoted(from leads, quoted *syntax.DblQuoted, t *trail) (leads, bool) {
	for _, part := range quoted.Parts {
		ok := !quoted.Dollar
		if lit, is := part.(*syntax.Lit); is {
			q := quoteRemover{static: true}
			q.escaped(lit.Value, "$`\"\\")
			from, ok = from.then(q.text.String(), t), ok && t.tight(q.text.String())
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
func (w *walker) leadLiteral(from leads, text string, first bool, t *trail) (leads, bool) {
	if first && strings.HasPrefix(text, "~") {
		if text != "~" && text[1] != '/' {
			return nil, false
		}
		home := &syntax.ParamExp{Short: true, Param: &syntax.Lit{Value: "HOME"}}
		from, ok := w.leadParam(from, home, t)
		return from.then(text[1:], t), ok
	}
	for i := 0; i < len(text) && len(from) > 0 && !from.whole(); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i++; i < len(text) && text[i] != '\n' {
				from = from.then(text[i:i+1], t)
			}
		case strings.IndexByte("*?[", c) >= 0:
			if t.inside == nil || t.loose {
				return nil, !t.loose
			}
			return from.name(), !strings.Contains(text, "/") || len(from) == 1 && from[0] == ""
		default:
			from = from.then(text[i:i+1], t)
		}
	}
	return from, true
}

// tight reports whether text is not a pattern that file names may have replaced.
func (t *trail) tight(text string) bool { return !t.loose || !strings.ContainsAny(text, `*?[\`) }

// then returns from with text after each lead, without those that can no longer
// become a network name. Split text begins again after each blank.
func (from leads) then(text string, t *trail) leads {
	var out leads
	if blank := strings.IndexAny(text, " \t\n"); t.loose && blank >= 0 {
		out = leads{""}.then(text[blank+1:], t)
	}
	for _, lead := range from {
		for _, folder := range networkFolders {
			whole := lead + text
			if t.inside != nil && lead == "" { // leading blanks are dropped
				whole = strings.TrimLeft(whole, " \t\n")
			}
			fits := common(whole, folder)
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

// name returns from with a name, which contains no slash, after each lead.
func (from leads) name() leads {
	var out leads
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

// common returns the common prefix of a and b.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// leadParam follows a variable. An unset variable is empty.
func (w *walker) leadParam(from leads, exp *syntax.ParamExp, t *trail) (leads, bool) {
	if exp.Length {
		return nil, true
	}
	if exp.Excl || exp.Slice != nil || exp.Repl != nil || exp.Names != 0 || exp.Param == nil {
		return nil, false
	}
	inner := &trail{inside: t.inside, loose: t.loose}
	values, ok := w.leadValues(from, paramName(exp.Param.Value), inner)
	t.every = append(t.every, inner.every...)
	if exp.Exp == nil {
		return values, ok
	}
	switch exp.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		more, fine := w.lead(from, exp.Exp.Word.Parts, t)
		return append(values, more...), ok && fine
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		more, ok := w.lead(from, exp.Exp.Word.Parts, t)
		return append(slices.Clone(from), more...), ok
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return values, ok
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return slices.Concat(inner.every, from, from.then("/", t), from.then("/dev", t)), ok // of an absolute name
	case syntax.RemLargePrefix:
		if exp.Exp.Word.Lit() == "*/" {
			return append(from.name(), from...), true
		}
	}
	return nil, false
}

// leadValues follows everything that the text assigns to a variable.
func (w *walker) leadValues(from leads, name string, t *trail) (leads, bool) {
	start := len(from) == 1 && from[0] == ""
	switch o := w.values[name]; {
	case name == "PWD" || name == "OLDPWD":
		return leads{"", "/", "/dev"}, start
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

func (w *walker) leadOrigin(from leads, name string, o *origin, t *trail) (leads, bool) {
	outer := *t
	t.inside, t.loose = map[string]bool{name: true}, t.loose || o.loose
	for other := range outer.inside {
		t.inside[other] = true
	}
	defer func() { t.inside, t.loose = outer.inside, outer.loose }()
	out := slices.Clone(from)
	for _, value := range o.values {
		next, ok := w.lead(from, value, t)
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
)

// leadOutput follows the few programs that print names of existing files.
func (w *walker) leadOutput(from leads, subst *syntax.CmdSubst) (leads, bool) {
	if printsNumbers(subst.Stmts) && w.sets["PATH"] == 0 {
		return from, true
	}
	if len(subst.Stmts) != 1 || w.sets["PATH"] > 0 {
		return nil, false
	}
	if isBaseName(subst.Stmts[0]) {
		return append(append(from.name(), from...), from.then("/", &trail{})...), true
	}
	if len(from) != 1 || from[0] != "" {
		return nil, false
	}
	switch words := plainWords(subst.Stmts[0]); {
	case newFile.MatchString(words): // nothing can be created below a network directory
		return from, true
	case folder.MatchString(words):
		return leads{"", "/", "/dev"}, true
	}
	return nil, false
}

// isBaseName reports whether stmt is basename, which prints names without a slash, or
// a single slash.
func isBaseName(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	return ok && undisturbed(stmt) && len(call.Args) > 0 && call.Args[0].Lit() == "basename"
}
