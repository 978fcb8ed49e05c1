// SPDX-License-Identifier: Apache-2.0

// Package pattern provides regular expressions that are compiled on first use.
//
// Compiling all expressions of a package when the program starts costs every command
// milliseconds, including those that never use one: an expression such as .{0,400}
// compiles to hundreds of instructions.
package pattern

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression. It is safe for concurrent use.
type Pattern struct {
	text string
	form func() *regexp.Regexp
}

// New returns the pattern for text, in the syntax of package regexp. The first use of
// an invalid pattern panics.
func New(text string) *Pattern {
	return &Pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

func (p *Pattern) String() string { return p.text }

// MatchString is regexp's.
func (p *Pattern) MatchString(s string) bool { return p.form().MatchString(s) }

// FindStringSubmatch is regexp's.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.form().FindStringSubmatch(s) }

// SubexpIndex is regexp's.
func (p *Pattern) SubexpIndex(name string) int { return p.form().SubexpIndex(name) }

// ReplaceAll is regexp's.
func (p *Pattern) ReplaceAll(src, repl []byte) []byte { return p.form().ReplaceAll(src, repl) }
