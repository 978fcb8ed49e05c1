// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestCommandOf(t *testing.T) {
	for language, want := range map[string]proposal.Proposal{
		"r":    {ID: "x", Argv: []string{"Rscript", "-e", "1\n'2'"}},
		"ruby": {ID: "x", Argv: []string{"ruby", "-e", "1\n'2'"}},
		"deno": {ID: "x", Argv: []string{"deno", "eval", "--ext=ts", "1\n'2'"}},
		"java": {ID: "x", Run: "cat > /tmp/snippet-d10c994f06d82d48.java <<'snippet-d10c994f06d82d48' && java /tmp/snippet-d10c994f06d82d48.java\n1\n'2'\nsnippet-d10c994f06d82d48\n"},
	} {
		got, is := CommandOf(proposal.Proposal{ID: "x", Code: "1\n'2'", Language: language})
		if diff := cmp.Diff(want, got); diff != "" || !is {
			t.Errorf("%s (-want +got):\n%s", language, diff)
		}
	}
	for _, language := range []string{"python", "bash", "julia", ""} {
		if _, is := CommandOf(proposal.Proposal{Code: "1", Language: language}); is {
			t.Errorf("%q has a command", language)
		}
	}
}

func TestMissingError(t *testing.T) {
	absent := &proposal.Cause{Kind: "tool", Subject: "java"}
	for _, x := range []struct {
		language string
		result   *proposal.Result
		cause    *proposal.Cause
		want     bool
	}{
		{"ruby", &proposal.Result{ExitCode: 127, Detail: "cannot start: no such file"}, nil, true},
		{"java", &proposal.Result{ExitCode: 127}, absent, true},
		{"ruby", &proposal.Result{ExitCode: 127}, nil, false}, // the code's own
		{"ruby", &proposal.Result{ExitCode: 127}, &proposal.Cause{Kind: "tool", Subject: "foo"}, false},
		{"java", &proposal.Result{ExitCode: 1}, absent, false},
		{"python", &proposal.Result{ExitCode: 127, Detail: "cannot start"}, nil, false},
		{"ruby", nil, nil, false},
	} {
		if got := MissingError(x.language, proposal.Record{Result: x.result, Cause: x.cause}); (got != nil) != x.want {
			t.Errorf("%s %+v: %v", x.language, x.result, got)
		}
	}
}
