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

// Match is regexp's.
func (p *Pattern) Match(b []byte) bool { return p.form().Match(b) }

// FindString is regexp's.
func (p *Pattern) FindString(s string) string { return p.form().FindString(s) }

// FindSubmatch is regexp's.
func (p *Pattern) FindSubmatch(b []byte) [][]byte { return p.form().FindSubmatch(b) }

// FindAllStringSubmatch is regexp's.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.form().FindAllStringSubmatch(s, n)
}

// FindAllStringIndex is regexp's.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.form().FindAllStringIndex(s, n)
}

// FindAllIndex is regexp's.
func (p *Pattern) FindAllIndex(b []byte, n int) [][]int { return p.form().FindAllIndex(b, n) }

// FindAllSubmatchIndex is regexp's.
func (p *Pattern) FindAllSubmatchIndex(b []byte, n int) [][]int {
	return p.form().FindAllSubmatchIndex(b, n)
}

// ReplaceAllString is regexp's.
func (p *Pattern) ReplaceAllString(src, repl string) string {
	return p.form().ReplaceAllString(src, repl)
}

// FindStringIndex is regexp's.
func (p *Pattern) FindStringIndex(s string) []int { return p.form().FindStringIndex(s) }

// FindAllString is regexp's.
func (p *Pattern) FindAllString(s string, n int) []string { return p.form().FindAllString(s, n) }
