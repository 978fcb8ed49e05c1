// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/fumehood/fumehood/pkg/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/snippet"
)

// Analyze finds the commands in p, and reads the code that they carry. It is what a Gate
// gives policy; parse.Analyze alone leaves the code out.
func Analyze(p proposal.Proposal) proposal.Analysis {
	a := parse.Analyze(p)
	a.Snippets = snippet.Of(p, a)
	return a
}
