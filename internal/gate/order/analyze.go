// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/shell/snippet"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// AnalyzeProposal finds the commands in p, and analyzes the code that they contain. Policy
// decides this analysis; parse.Analyze alone omits the code.
func AnalyzeProposal(p proposal.Proposal) proposal.Analysis {
	a := parse.Analyze(p)
	a.Snippets = snippet.ReadSnippets(p, a)
	return a
}
