// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/fumehood/fumehood/pkg/parse"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/snippet"
)

// analyse finds the commands in p, and reads the code that they carry.
func analyse(p proposal.Proposal) proposal.Analysis {
	a := parse.Analyze(p)
	a.Snippets = snippet.Of(p, a)
	return a
}
