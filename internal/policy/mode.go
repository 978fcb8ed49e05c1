// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/internal/policy/module"
)

// observeRules takes the effect from the rules that METADATA says are observed. It knows only the layer's
// own rules: no layer changes how another one counts.
func (l *layer) observeRules(modules map[string]*ast.Module) {
	if l.shipped {
		return
	}
	var rules []*ast.Rule
	l.trials = module.ObservedNames(modules, l.now, lint.IDOf)
	l.observed, rules = module.ObserveRules(modules, l.now)
	l.revision = Layer{Files: l.files}.Digest()[:len("sha256:")+revisionDigits]
	texts := map[string][]string{}
	for _, r := range rules {
		id := lint.IDOf(r)
		texts[id] = append(texts[id], string(r.Location.Text))
	}
	l.revisions = map[string]string{}
	for id, all := range texts {
		slices.Sort(all)
		sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
		l.revisions[id] = "sha256:" + hex.EncodeToString(sum[:])[:revisionDigits]
	}
}

// revisionDigits are the digits of a Reason's Revision.
const revisionDigits = 12

// revisionOf is the revision of a rule that is observed: of the rule's text, or else of the layer.
func (l *layer) revisionOf(rule string) string { return cmp.Or(l.revisions[rule], l.revision) }

// ObservedRules says which rules are observed, until when, a line for each layer and date. Their METADATA says
// so; a layer that is observed as a whole is not in it.
func (e *Engine) ObservedRules() []string {
	var lines []string
	for _, l := range e.layers {
		for _, until := range slices.Sorted(maps.Keys(l.trials)) {
			names := l.trials[until]
			text := strings.Join(names[:min(len(names), maxNamed)], ", ")
			if more := len(names) - maxNamed; more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
			lines = append(lines, fmt.Sprintf("on trial until %s, in the policy %s: %s", until, l.label, text))
		}
	}
	return lines
}

// maxNamed are the rules that one line names.
const maxNamed = 10

// untils matches the dates from which on rules enforce.
var untils = regexp.MustCompile(`until["']?\s*:\s*["']?([0-9]{4}-[0-9]{2}-[0-9]{2})`)

// digestUntils adds the dates of layers that are over to a digest: from then on the same files refuse more, and an
// approval from before does not hold.
func digestUntils(h hash.Hash, layers []Layer) {
	over := map[string]bool{}
	for _, s := range layers {
		if s.shipped {
			continue
		}
		for _, f := range s.Files {
			for _, found := range untils.FindAllSubmatch(f.Content, -1) {
				date, err := time.Parse(time.DateOnly, string(found[1]))
				if err == nil && !s.readTime().Before(date) {
					over[string(found[1])] = true
				}
			}
		}
	}
	for _, date := range slices.Sorted(maps.Keys(over)) {
		io.WriteString(h, fmt.Sprintf("over %s\n", date))
	}
}
