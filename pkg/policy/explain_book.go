// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/pkg/policy/facts"
	"github.com/fumehood/fumehood/pkg/policy/module"
)

// A book is what the METADATA of one layer says of its rules. Its pages are read when
// somebody asks: a run that refuses nothing needs none.
type book struct {
	layer *layer
	files []File
	mu    sync.Mutex
	pages map[string][]definition
	words map[string]map[string]bool // of the examples of each file

	compile   sync.Mutex
	compilers map[string]*ast.Compiler // by decision point
}

// A definition is one rule of a set that means something.
type definition struct {
	layer    *layer
	point    string
	set      string
	id       string // ends in a dot where the rule gives several
	title    string
	file     string
	row      int
	match    []string
	notMatch []string
	rule     *ast.Rule // as it is written, not compiled
	imports  []*ast.Import
}

func newBook(l *layer, files []File) *book {
	return &book{layer: l, files: files, pages: map[string][]definition{}, words: map[string]map[string]bool{}, compilers: map[string]*ast.Compiler{}}
}

// about reads the pages that interest finds worth it.
func (b *book) about(interest func(File) bool) []definition {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []definition
	for _, f := range b.files {
		if path.Ext(f.Name) != ".rego" || !f.Decides() || !interest(f) {
			continue
		}
		page, read := b.pages[f.Name]
		if !read {
			page = b.page(f)
			b.pages[f.Name] = page
		}
		all = append(all, page...)
	}
	return all
}

// page reads one file, which has compiled. What its METADATA should say and does not
// say well is left out: policy check tells of it.
func (b *book) page(f File) []definition {
	m, err := parseWith("", f, true)
	if err != nil {
		if m, err = parseWith("", f, false); err != nil {
			return nil
		}
	}
	point := module.PackageOf(m)
	last := map[string]definition{}
	var page []definition
	for _, r := range m.Rules {
		if !slices.Contains(module.Sets(point), module.RuleName(r)) {
			continue
		}
		d := definition{layer: b.layer, point: point, set: module.RuleName(r), id: idOf(r), file: f.Name, row: r.Location.Row, rule: r, imports: m.Imports}
		d.annotate(r.Annotations)
		if before, ok := last[d.set+d.id]; ok && d.title == "" && len(r.Annotations) == 0 {
			d.title, d.match, d.notMatch = before.title, before.match, before.notMatch // a further body
		}
		last[d.set+d.id] = d
		page = append(page, d)
	}
	return page
}

func (d *definition) annotate(list []*ast.Annotations) {
	for _, a := range list {
		d.title = a.Title
		if id, ok := a.Custom["rule"].(string); ok && id != "" {
			d.id = id
		}
		d.match, d.notMatch = texts(a.Custom["match"]), texts(a.Custom["not_match"])
	}
}

// texts are the strings among v's members; other points have examples that are objects.
func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

var plainID = regexp.MustCompile(`^[a-z0-9_-]+(\.[a-z0-9_-]+)+$`)

// idOf finds the id in a rule's head: what stands under "rule", or the first argument
// of a function that makes the member.
func idOf(r *ast.Rule) string {
	if r.Head.Key == nil {
		return ""
	}
	id := ""
	ast.WalkTerms(r.Head.Key, func(t *ast.Term) bool {
		if s, ok := t.Value.(ast.String); ok && id == "" && plainID.MatchString(string(s)) {
			id = string(s)
		}
		return id != ""
	})
	return id
}

// is reports whether the definition gives members with the id.
func (d definition) is(id string) bool {
	return d.id != "" && (d.id == id || strings.HasSuffix(d.id, ".") && strings.HasPrefix(id, d.id))
}

// wholly is the interest of who wants to read it all.
func wholly(File) bool { return true }

// mentions is the interest in a word that METADATA or a rule holds.
func mentions(word string) func(File) bool {
	return func(f File) bool { return word != "" && bytes.Contains(f.Content, []byte(word)) }
}

var exampleLine = regexp.MustCompile(`(?m)^#\s+(match|not_match):.*$`)

// exemplifies is the interest in examples of a program. It is asked for under b's lock.
func (b *book) exemplifies(program string) func(File) bool {
	return func(f File) bool {
		words, read := b.words[f.Name]
		if !read {
			words = map[string]bool{}
			for _, line := range exampleLine.FindAllString(string(f.Content), -1) {
				for _, w := range strings.FieldsFunc(line, func(r rune) bool { return r < 0x80 && !facts.WordyByte(byte(r)) }) {
					words[w] = true
				}
			}
			b.words[f.Name] = words
		}
		return words[program]
	}
}
