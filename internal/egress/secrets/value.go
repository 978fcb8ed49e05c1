// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// RedactValue returns v with markers in place of secrets in every text that it contains, map
// keys included, and what was found. v itself is not changed, and is returned if nothing
// is found. Texts of type []byte are left unchanged.
//
// Markers in v are assumed to be genuine. Each text is searched separately: text that is a
// secret only because of its field's name is not found.
func RedactValue[T any](r *Redactor, v T) (T, []proposal.Redaction) {
	if !r.mayContainFind(reflect.ValueOf(v)) {
		return v, nil
	}
	c := newCounter()
	out := r.copyOf(reflect.ValueOf(v), c)
	if len(c.found) == 0 {
		return v, nil
	}
	return out.Interface().(T), c.tally().Found
}

// mayContainFind reports whether v may contain a find: it searches all of its texts at once,
// which takes a fraction of the time.
func (r *Redactor) mayContainFind(v reflect.Value) bool {
	var b strings.Builder
	collectTexts(v, &b)
	text := b.String()
	if len(text) < MinMask {
		return false
	}
	if len(text) > window || len(r.scanner.textSpans(text, 1, patience)) > 0 {
		return true
	}
	found := false
	m := newMasker(io.Discard, r.newStreamMatchers(false), r.replacementFor, func(string, string) { found = true })
	_, _ = m.Write([]byte(text)) // the output is discarded
	_ = m.Close()
	return found
}

// minText is the minimum length of a text that is searched.
const minText = MinMask

func collectTexts(v reflect.Value, b *strings.Builder) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() >= minText {
			b.WriteString(v.String())
			b.WriteByte('\n')
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collectTexts(v.Elem(), b)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collectTexts(v.Field(i), b)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				return
			}
			collectTexts(v.Index(i), b)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			collectTexts(key, b)
			collectTexts(value, b)
		}
	}
}

// copyOf returns a copy of v with its texts redacted.
func (r *Redactor) copyOf(v reflect.Value, c *counter) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		if v.Len() >= minText {
			out.SetString(r.redactString(v.String(), c))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(r.copyOf(v.Elem(), c))
			out.Set(p)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return out
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(r.copyOf(v.Field(i), c))
			}
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 {
			return out
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(r.copyOf(v.Index(i), c))
		}
	case reflect.Map:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for key, value := range v.Seq2() {
			out.SetMapIndex(r.copyOf(key, c), r.copyOf(value, c))
		}
	}
	return out
}

// redactString returns s redacted, and counts the finds in c.
func (r *Redactor) redactString(s string, c *counter) string {
	out, t := r.redactText([]byte(s), false)
	if len(t.Found) == 0 {
		return s
	}
	for _, f := range t.Found {
		c.found[f.Rule] += f.Count
	}
	return string(out)
}
