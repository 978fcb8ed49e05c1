// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/internal/policy/lint"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func refused(text string) explain.Explanation {
	return explain.Explanation{Source: text, Decision: proposal.Decision{Reasons: []proposal.Reason{
		{Rule: "go.option", Message: "no " + text, Span: &proposal.Span{Start: 3, End: 7, Line: 1}, Retry: proposal.RetryVary}}}}
}

const explained = `deny  go test -exec ./x
deny[go.option]: no go test -exec ./x
  |
1 | go test -exec ./x
  |    ^^^^
  = retry: vary (it may be allowed if written differently)
`

func TestExplanation(t *testing.T) {
	got := renderExplanation(refused("go test -exec ./x"), explanationStyle{})
	if !strings.HasPrefix(strings.ReplaceAll(got, "\n\n", "\n"), explained) {
		t.Errorf("got\n%s\nwant\n%s", got, explained)
	}
	if colored := renderExplanation(refused("go test"), explanationStyle{color: true}); !strings.Contains(colored, "\x1b[31;1mdeny\x1b[0m") {
		t.Errorf("no color in %q", colored)
	}
}

// Whatever a command says, nothing of it is hidden or obeyed.
func TestExplanationIsHarmless(t *testing.T) {
	if got := renderExplanation(refused("go \x1b[2J\u202e\r::warning::x"), explanationStyle{deep: true}); strings.ContainsAny(got, "\x1b\u202e\r") {
		t.Errorf("%q", got)
	}
}

func TestReview(t *testing.T) {
	var b strings.Builder
	r := policy.Review{Rules: []policy.RuleCount{{Layer: "a", Point: "command", Set: "deny", Rules: 2}, {Layer: "b"}}}
	if err := writeReview(&b, r); err != nil || !strings.Contains(b.String(), "no problems") || strings.Contains(b.String(), "\nb") {
		t.Errorf("%v: %s", err, b.String())
	}
	b.Reset()
	r.Problems = []lint.Problem{{Severity: lint.Wrong, Code: "x.y", Message: "wrong\x1b", Hint: "fix it"}}
	if err := writeReview(&b, r); err != nil || !strings.Contains(b.String(), `wrong\u001b [x.y]`) || !strings.Contains(b.String(), "0 refused, 1 error, 0 warnings") {
		t.Errorf("%v: %s", err, b.String())
	}
}
