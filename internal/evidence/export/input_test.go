// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What is exported of a command is its canonical text, in which tricks of spelling are gone, and
// the original where there is none. Code in another language than a shell's stays as it is.
func TestSource(t *testing.T) {
	const text, canonical = "l's'   -l", "ls -l"
	for _, c := range []struct {
		name      string
		p         proposal.Proposal
		canonical string
		want      string
	}{
		{"a command", proposal.Proposal{Run: text}, canonical, canonical},
		{"a command that was not analyzed", proposal.Proposal{Run: text}, "", text},
		{"code of a shell", proposal.Proposal{Code: text, Language: "bash"}, canonical, canonical},
		{"code of sh", proposal.Proposal{Code: text, Language: "sh"}, canonical, canonical},
		{"code of a shell that was not analyzed", proposal.Proposal{Code: text, Language: "bash"}, "", text},
		{"code of Python", proposal.Proposal{Code: text, Language: "python"}, canonical, text},
		{"invalid", proposal.Proposal{Run: "other", Invalid: &proposal.Invalid{Text: text}}, canonical, text},
	} {
		if got := proposalText(c.p, proposal.Analysis{Canonical: c.canonical}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
