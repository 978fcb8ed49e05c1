// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/version"

	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The shipped policy is in the program twice: as files, and as the compiler leaves them in
// policies.Compiled, since compiling them takes longer than the rest of a start. A test
// makes the second from the first and compares it byte for byte. It is used only for
// exactly these files and this version of OPA: otherwise, as after a change of a rule, the
// files are compiled. It is never written or read outside the program.

// builtinFormat is increased when the same bytes would have another meaning.
const builtinFormat = 3

// A builtinLayer is the first line of policies.Compiled. The second are the marks, see module.MarkRules, which only
// overrides need. The rules of each point follow.
type builtinLayer struct {
	Of       string                  `json:"of"` // see builtinKey
	Counts   []RuleCount             `json:"counts"`
	Programs []string                `json:"programs"`
	Labels   map[string]builtinLabel `json:"labels"`
	Points   []builtinPoint          `json:"points"`
}

type builtinLabel struct {
	Retry    proposal.Retry `json:"retry,omitempty"`
	Severity string         `json:"severity,omitempty"`
	Category string         `json:"category,omitempty"`
}

type builtinPoint struct {
	Name   string `json:"name"`
	Query  string `json:"query"`
	Beyond bool   `json:"beyond,omitempty"`
	Size   int    `json:"size"`
}

// builtinKey identifies what the compiled rules depend on: the files, and who compiled them.
func builtinKey(s Layer) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", builtinFormat, version.Version, digestLayers([]Layer{s}, false)))
	return hex.EncodeToString(sum[:])
}

// restoreLayer is the compiled layer s, or nil if text is not of s. Its points are
// restored at their first use.
func restoreLayer(s Layer, text string) (l *layer, err error) {
	defer module.RecoverPanic(s.Name, &err)
	head, rules, _ := strings.Cut(text, "\n")
	marks, rules, _ := strings.Cut(rules, "\n")
	if !strings.HasPrefix(head, fmt.Sprintf(`{"of":%q,`, builtinKey(s))) {
		return nil, nil
	}
	var b builtinLayer
	if err := json.Unmarshal([]byte(head), &b); err != nil {
		return nil, module.Stop(module.CodeCompile, "cannot read the compiled policy", "report this as a defect", err)
	}
	l = &layer{name: s.Name, role: s.Role, shipped: s.shipped, now: s.readTime(), counts: b.Counts,
		programs: b.Programs,
		points:   map[string]*point{}, labels: map[string]label{}, files: s.Files,
		marks: sync.OnceValue(func() (m map[string]string) {
			_ = json.Unmarshal([]byte(marks), &m) // without marks every override is refused
			return m
		})}
	for rule, one := range b.Labels {
		l.labels[rule] = label{retry: one.Retry, severity: one.Severity, category: one.Category}
	}
	if l.data, err = s.Store(); err != nil {
		return nil, err
	}
	for _, p := range b.Points {
		own := rules[:p.Size]
		rules = rules[p.Size:]
		l.points[p.Name] = &point{sync.OnceValues(func() (compiled, error) {
			return l.restorePoint(p, own)
		})}
	}
	if rules != "" {
		return nil, module.Stop(module.CodeCompile, "cannot read the compiled policy: it is longer than its points",
			"report this as a defect", nil)
	}
	return l, nil
}

func (l *layer) restorePoint(p builtinPoint, rules string) (c compiled, err error) {
	defer module.RecoverPanic(l.name, &err)
	compiler, err := module.RestoreRules(p.Name, rules)
	if err != nil {
		return c, compileStop(l.name, err)
	}
	query, err := l.prepareQuery(context.Background(), p.Name, p.Query, compiler)
	return compiled{query, p.Beyond}, err
}
