// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A doubt is a word that is accepted only if nothing in the whole text can give it
// another meaning.
type doubt struct {
	kind  unknownKind
	span  proposal.Span
	clear func() bool
}

func (w *walker) addDoubt(kind unknownKind, span proposal.Span, clear func() bool) {
	w.doubts = append(w.doubts, doubt{kind, span, clear})
}

// An origin is everything that a variable may hold because of the text. Bash
// evaluates variables as expressions in arithmetic, and a[$(id)] in a variable runs
// id.
type origin struct {
	unknown  bool                // anything: input, output of a program
	outside  bool                // anything, and not from one of the values
	counted  bool                // numbers that a program prints
	text     bool                // literal text that is not a number
	option   bool                // literal text with an option of find that runs something
	percent  bool                // literal text with a percent sign
	appended bool                // some value is appended to the existing one
	loose    bool                // some value is a word of an expansion that was split
	names    []string            // other variables
	values   [][]syntax.WordPart // the assigned values, as written
}

// maxValues is how many values of one variable are checked.
const maxValues = 64

func (w *walker) originOf(name string) *origin {
	o := w.values[name]
	if o == nil {
		o = &origin{}
		putInMap(&w.values, name, o)
	}
	return o
}

// markOutside records a value that comes from outside the text.
func (o *origin) markOutside() { o.unknown, o.outside = true, true }

func (o *origin) addText(text string) {
	if strings.Trim(text, "0123456789+-. \t\n") != "" {
		o.text = true
	}
	o.option = o.option || strings.Contains(text, "-exec") || strings.Contains(text, "-ok")
	o.percent = o.percent || strings.Contains(text, "%")
}

// addLiteral records a value that is exactly text.
func (o *origin) addLiteral(text string) {
	o.addText(text)
	o.addValue([]syntax.WordPart{&syntax.SglQuoted{Value: text}})
}

func (o *origin) addValue(parts []syntax.WordPart) {
	if len(o.values) == maxValues {
		o.markOutside()
		return
	}
	o.values = append(o.values, parts)
}

// addArg records the value in a word NAME=value that a program or builtin reads.
func (o *origin) addArg(a arg, value string) {
	if a.Static {
		o.addLiteral(value)
	} else {
		o.markOutside()
	}
}

// addItem records that a word of a command, loop or array becomes the value.
func (o *origin) addItem(w *walker, a arg) {
	switch {
	case a.Static:
		o.addLiteral(a.Value)
	case a.src == nil:
		o.markOutside()
	default:
		o.addWord(w, a.src)
		o.loose = o.loose || a.split
	}
}

// addWord records that word's value is assigned.
func (o *origin) addWord(w *walker, word *syntax.Word) {
	if word == nil {
		o.addValue(nil)
		return
	}
	o.addParts(w, word.Parts)
	o.addValue(word.Parts)
	if !hasBrace(word) {
		return
	}
	words := w.expandBraces(word)
	if words == nil {
		o.markOutside()
	}
	for _, one := range words {
		o.addValue(one.Parts)
	}
}

func (o *origin) addParts(w *walker, parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			o.addText(part.Value)
		case *syntax.SglQuoted:
			o.addText(part.Value)
		case *syntax.DblQuoted:
			o.addParts(w, part.Parts)
		case *syntax.ArithmExp:
		case *syntax.ParamExp:
			o.addParam(w, part)
		case *syntax.CmdSubst:
			counts := printsNumbers(part.Stmts)
			o.counted, o.unknown = o.counted || counts, o.unknown || !counts
		default:
			o.unknown = true
		}
	}
}

// addParam follows the forms of ${…} that yield a part of the value, or a word inside
// the braces. The other forms may produce new text.
func (o *origin) addParam(w *walker, exp *syntax.ParamExp) {
	if exp.Length {
		return
	}
	if exp.Param == nil || exp.Excl || exp.Names != 0 {
		o.unknown = true
		return
	}
	o.names = append(o.names, paramName(exp.Param.Value))
	if exp.Exp != nil {
		switch exp.Exp.Op {
		case syntax.OtherParamOps: // @a and others print more than the value
			o.unknown = true
		case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix: // a pattern
		default:
			if exp.Exp.Word != nil { // ${x:-} has none
				o.addParts(w, exp.Exp.Word.Parts)
			}
		}
	}
	if exp.Repl != nil && exp.Repl.With != nil {
		o.addParts(w, exp.Repl.With.Parts)
	}
}

// paramName maps the positional parameters to one name.
func paramName(name string) string {
	if name == "*" || strings.Trim(name, "0123456789") == "" {
		return "@"
	}
	return name
}

// mayHold walks name's origins and reports whether wanted is true for one of them.
func (w *walker) mayHold(name string, wanted func(*origin) bool, seen map[string]bool) bool {
	if anyText(name) {
		return true
	}
	if seen[name] {
		return false
	}
	seen[name] = true
	o := w.values[name]
	return o != nil && w.originHolds(o, wanted, seen)
}

// originHolds is like may, for a value without a name.
func (w *walker) originHolds(o *origin, wanted func(*origin) bool, seen map[string]bool) bool {
	if o.unknown || o.counted && w.sets["PATH"] > 0 || wanted(o) {
		return true
	}
	return slices.ContainsFunc(o.names, func(name string) bool { return w.mayHold(name, wanted, seen) })
}

// onlyNumbers reports whether word can only expand to numbers.
func (w *walker) onlyNumbers(word *syntax.Word) bool {
	if word == nil {
		return false
	}
	o := &origin{}
	o.addParts(w, word.Parts)
	return !w.originHolds(o, func(o *origin) bool { return o.text }, map[string]bool{})
}

// literalValues returns all values of a word that is one expansion. It reports false if
// the text does not determine them all.
func (w *walker) literalValues(parts []syntax.WordPart, seen map[string]bool) ([]string, bool) {
	if quoted, ok := onlyPart[*syntax.DblQuoted](parts); ok && !quoted.Dollar && len(quoted.Parts) == 1 {
		parts = quoted.Parts
	}
	exp, ok := onlyPart[*syntax.ParamExp](parts)
	if !ok || exp.Param == nil || !plainValue(exp) {
		value, _ := literalWord(&syntax.Word{Parts: parts}, readWord)
		return []string{value.Value}, len(parts) == 0 || value.Static
	}
	name := paramName(exp.Param.Value)
	o := w.values[name]
	if seen[name] || anyText(name) || o != nil && (o.outside || o.appended || o.loose) {
		return nil, false
	}
	seen[name] = true
	defer delete(seen, name)
	out := []string{""}
	if o == nil {
		return out, true
	}
	for _, value := range o.values {
		more, ok := w.literalValues(value, seen)
		if !ok {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, len(out) <= maxValues
}

// onlyPart returns the single part of a word, if it is a T.
func onlyPart[T syntax.WordPart](parts []syntax.WordPart) (part T, ok bool) {
	if len(parts) == 1 {
		part, ok = parts[0].(T)
	}
	return part, ok
}

// plainValue reports whether exp is a variable's whole value, or an array's elements.
func plainValue(exp *syntax.ParamExp) bool {
	bare := *exp
	bare.Index = nil
	return isPlainParam(&bare)
}

// checkOrigins refuses variables that are evaluated and may hold more than numbers,
// and doubtful words.
func (w *walker) checkOrigins() {
	for _, name := range sortedKeys(w.numbers) {
		if w.mayHold(name, func(o *origin) bool { return o.text }, map[string]bool{}) {
			w.addUnknown(unknownArithmetic, w.numbers[name])
		}
	}
	for _, doubt := range w.doubts {
		if !doubt.clear() {
			w.addUnknown(doubt.kind, doubt.span)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
