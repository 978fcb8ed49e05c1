// SPDX-License-Identifier: Apache-2.0

package snippet_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/shell/snippet"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestOf finds the code in a proposal: "LANGUAGE VIA IMPORTS", each with the first
// finding, if any.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		p    proposal.Proposal
		want []string
	}{
		{proposal.Proposal{Run: "python3 -c 'import os'"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "python3 -Ic 'import os'"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "python3 -c'import os'"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "python3 -W error -X dev -B -c 'import os' a b"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "/usr/bin/python3.11 -c 'import os'"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "timeout 5 env A=1 python3 -c 'import os' | cat"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "bash -c \"python3 -c 'import os'\""}, []string{"python -c os"}},
		{proposal.Proposal{Run: "python3 - <<'E'\nimport os\nE\n"}, []string{"python heredoc os"}},
		{proposal.Proposal{Run: "python3 - a b <<'E'\nimport os\nE\n"}, []string{"python heredoc os"}},
		{proposal.Proposal{Run: "python3 <<'E'\nimport os\nE\n"}, []string{"python heredoc os"}},
		{proposal.Proposal{Run: "python3 <<< 'import os'"}, []string{"python herestring os"}},
		{proposal.Proposal{Run: "python3 <<E\nimport $x\nE\n"}, []string{"python heredoc  dynamic-text"}},
		{proposal.Proposal{Run: "python3 -c \"import $x\""}, []string{"python -c  dynamic-text"}},
		{proposal.Proposal{Run: "python3 x.py <<'E'\nimport os\nE\n"}, nil},
		{proposal.Proposal{Run: "python3 -m pytest -c 'import os'"}, nil},
		{proposal.Proposal{Run: "cat <<'E' | grep x\nimport os\nE\n"}, nil},
		{proposal.Proposal{Run: "node -e 'require(\"fs\")'"}, []string{"javascript -e fs"}},
		{proposal.Proposal{Run: "node -pe 'require(\"fs\")'"}, []string{"javascript -e fs"}},
		{proposal.Proposal{Run: "node --eval='require(\"fs\")'"}, []string{"javascript -e fs"}},
		{proposal.Proposal{Run: "node --no-warnings -r ./x.js --print 'require(\"fs\")'"}, []string{"javascript -e fs"}},
		{proposal.Proposal{Run: "node --input-type=module -e 'import \"fs\"'"}, []string{"javascript -e fs"}},
		{proposal.Proposal{Run: "node --require ./x.js --conditions a --eval 'require(\"fs\")'"}, []string{"javascript -e fs"}},
		{proposal.Proposal{Run: "node --input-type commonjs-typescript -e 'const a: number = require(\"fs\")'"}, []string{"typescript -e fs"}},
		{proposal.Proposal{Run: "node -e 'const a: number = {{{'"}, []string{"javascript -e  not-understood"}},
		{proposal.Proposal{Run: "python3 --check-hash-based-pycs always -c 'import os'"}, []string{"python -c os"}},
		{proposal.Proposal{Run: "deno eval --ext=ts 'import x from \"y\"'"}, []string{"typescript -e y"}},
		{proposal.Proposal{Run: "node <<'E'\nrequire('fs')\nE\n"}, []string{"javascript heredoc fs"}},
		{proposal.Proposal{Run: "deno eval 'import x from \"y\"'"}, []string{"typescript -e y"}},
		{proposal.Proposal{Run: "tsx -e 'import x from \"y\"'"}, []string{"typescript -e y"}},
		{proposal.Proposal{Code: "import os", Language: "python"}, []string{"python code os"}},
		{proposal.Proposal{Code: "require('fs')", Language: "javascript"}, []string{"javascript code fs"}},
		{proposal.Proposal{Code: "python3 -c 'import os'; node -e 'require(`fs`)'", Language: "bash"}, []string{"python code os", "javascript code fs"}},
		{proposal.Proposal{Argv: []string{"python3", "-c", "import os"}}, []string{"python -c os"}},
		{proposal.Proposal{Code: "import (", Language: "python"}, []string{"python code  not-understood"}},
		{proposal.Proposal{Code: "import (", Language: "python", Context: "a"}, []string{"python code  not-understood, syntax only"}},
		{proposal.Proposal{Code: "let = {{", Language: "javascript", Context: "a"}, []string{"javascript code  not-understood, syntax only"}},
		{proposal.Proposal{Code: "python3 -c 'import ('", Language: "bash", Context: "a"}, []string{"python code  not-understood"}},
		{proposal.Proposal{Code: "!ls\nimport os", Language: "python", Context: "a"}, []string{"python code os"}},
		{proposal.Proposal{Run: "go test ./..."}, nil},
	} {
		var got []string
		for _, s := range snippet.ReadSnippets(c.p, parse.Analyze(c.p)) {
			line := s.Language + " " + s.Via + " " + strings.Join(s.Imports, ",")
			if len(s.Findings) > 0 {
				line += " " + s.Findings[0].Code
			}
			if s.SyntaxOnly {
				line += ", syntax only"
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v: -want +got\n%s", c.p, diff)
		}
	}
}

func TestOfStopsAtManySnippets(t *testing.T) {
	p := proposal.Proposal{Run: strings.Repeat("python3 -c 'import os'\n", 50)}
	all := snippet.ReadSnippets(p, parse.Analyze(p))
	if len(all) != 33 || all[32].Complete || all[31].Complete == false {
		t.Errorf("%d snippets, the last: %+v", len(all), all[len(all)-1])
	}
}
