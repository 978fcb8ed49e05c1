// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxOrigins is the number of layers that are shown; maxPolicies is the maximum in
// a report.
const (
	maxOrigins  = 8
	maxPolicies = 64
)

// originRows shows where the policy comes from, one row per layer except for the
// shipped one.
func originRows(origins []proposal.PolicyOrigin) []string {
	var rows []string
	for _, o := range origins {
		if o.Kind == "shipped" {
			continue
		}
		if len(rows) == maxOrigins {
			return append(rows, "<tr><th>policy from</th><td>more sources; see the report file</td></tr>")
		}
		rows = append(rows, "<tr><th>policy from</th><td>"+formatCode(originWords(o), 300)+"</td></tr>")
	}
	return rows
}

// originWords describes one layer in one line: its source, its version, and what it may
// do.
func originWords(o proposal.PolicyOrigin) string {
	words := []string{text.Inline(o.Spec, 120)}
	switch {
	case o.Commit != "":
		words[0] += fmt.Sprintf(" at %.12s", o.Commit)
	case o.Digest != "":
		words[0] += fmt.Sprintf("@%.19s…", o.Digest)
	}
	if o.Revision != "" {
		words = append(words, "revision "+text.Inline(o.Revision, 40))
	}
	if o.SignedBy != "" {
		words = append(words, fmt.Sprintf("signed by %.19s…", o.SignedBy))
	}
	if !o.Copied.IsZero() {
		words = append(words, "copy of "+o.Copied.UTC().Format(time.RFC3339)+" because GitHub did not answer")
	}
	return strings.Join(append(words, o.Role), ", ")
}

// checkPolicies checks a report's policy layers.
func (p *reportChecker) checkPolicies(origins []proposal.PolicyOrigin) {
	p.requireThat(len(origins) <= maxPolicies, "run.policies", "has too many entries")
	for i, o := range origins[:min(len(origins), maxPolicies)] {
		path := fmt.Sprintf("run.policies[%d]", i)
		p.oneOf(o.Kind, path+".kind", "shipped", "folder", "git", "base", "bundle", "https", "oci", "github")
		p.oneOf(o.Role, path+".role", "restricts", "opens", "allows", "grants")
		p.matchGrammar(digestGrammar, o.Digest, path+".digest", false)
		p.matchGrammar(fullSHA, o.Commit, path+".commit", true)
		p.requireThat(o.Spec != "" && len(o.Spec) <= 4096, path+".spec", "is empty or too long")
		p.requireThat(len(o.Revision) <= 200 && len(o.SignedBy) <= 100, path, "has a text that is too long")
	}
}
