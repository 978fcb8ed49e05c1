// SPDX-License-Identifier: Apache-2.0

package baseline_test

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/shell/parse"
	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A failure of which only a part is seen is not compared, unless a formatter shows failing tests.
func TestUnseen(t *testing.T) {
	const named = "--- FAIL: TestOld (0.01s)\n    x_test.go:12: got 1\nFAIL\nFAIL\texample.org/x\t0.012s\nFAIL\n"
	for _, test := range []struct{ run, out, about string }{
		{"npm test", "failed\n", ""},
		{"set -o pipefail; npm test 2>&1 | tail -3", "failed\n", "goes through tail"},
		{"set -o pipefail; go test ./... | tail -5", named, "goes through tail"},
		{"bash tests/two.sh | grep -c ok", "0\n", "goes through grep"},
		{"set -o pipefail; node --test | tap-spec", "failed\n", "another program"},
		{"set -o pipefail; go test ./... | gotest-format", named, ""},
		{"set -o pipefail; npm test | tee out.txt", "failed\n", ""},
		{"set -o pipefail; npm test | tee out.txt | sed s/a/b/", "failed\n", "goes through sed"},
		{"set -o pipefail; npm test 2>&1 | while read -r l; do echo $l; done", "failed\n", "goes through read"},
		{"set -o pipefail; npm test | cat", "failed\n", ""},
		{"set -o pipefail; npm test | cat old.txt", "failed\n", "another program"},
		{"set -o pipefail; go test ./... | timeout 5 tail -3", named, "goes through tail"},
		{"set -o pipefail; go test ./... | bash -c 'tail -3'", named, "goes through tail"},
		{"set -o pipefail; go test ./... | python3 -c 'print(1)'", named, "goes through python3"},
		{"npm test > /dev/null 2>&1", "", "error output"},
		{"npm test &> out.txt", "", "error output"},
		{"npm test 2>/dev/null", "failed\n", "error output"},
		{"{ npm test; } > /dev/null 2>&1", "", "error output"},
		{"(npm test) &> /dev/null", "", "error output"},
		{"exec > out.txt 2>&1; npm test", "", "error output"},
		{"if ! npm test > /dev/null 2>&1; then echo no; exit 1; fi", "no\n", "error output"},
		{"npm test > >(tail -1) 2>&1", "failed\n", "error output"},
		{"go test ./... 2>/dev/null", named, ""},
		{"command -v node > /dev/null 2>&1; npm test", "failed\n", ""},
		{"npm test > out.txt", "failed\n", ""},
		{"npm test 2>&1", "failed\n", ""},
		{`test -z "$(gofmt -l .)"`, "", "substitution"},
		{`npm test -- "$(pwd)"`, "failed\n", ""},
		{"cat in.txt | node check.js", "failed\n", ""},
		{"echo x | grep y", "", ""},
		{"set -o pipefail; echo x | ./shop | tail -1", "failed\n", "goes through tail"},
		{"set -o pipefail; (npm test; echo x) | tail -1", "failed\n", "goes through tail"},
		{"set -o pipefail; npm test | echo x | tail -1", "failed\n", "another program"},
		{"set -o pipefail; npm test | (echo x | tail -1)", "failed\n", "another program"},
	} {
		record := func() proposal.Record {
			p := proposal.Proposal{ID: "a", Run: test.run}
			return proposal.Record{Proposal: p, Analysis: parse.Analyze(p), Decision: proposal.Decision{Effect: proposal.Allow},
				Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1, Stdout: proposal.Stream{Head: []byte(test.out), Bytes: int64(len(test.out))}}}
		}
		want := proposal.BaseSame
		if test.about != "" {
			want = proposal.BaseUnknown
		}
		if got := baseline.Compare(record(), record()); got.Verdict != want || !strings.Contains(got.Why, test.about) {
			t.Errorf("%s: %+v, want %s, %q", test.run, got, want, test.about)
		}
	}
}
