// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	nethtml "golang.org/x/net/html"

	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func writer() points.Trigger {
	return points.Trigger{
		Command: "approve", Event: "issue_comment",
		Actor: points.Actor{Login: "mona", ID: 9, Type: "User", Permission: "read", Author: true},
		PR:    points.TriggerPR{Number: 7, State: "closed", Head: sha}, Runs: points.TriggerRuns{PR: 20, MaxPR: 20, MaxDay: 100},
	}
}

func record() proposal.Record {
	return proposal.Record{
		Proposal: proposal.Proposal{ID: "unit"}, Analysis: proposal.Analysis{Canonical: "go test ./... | tail -n 20"},
		Decision: proposal.Decision{Effect: proposal.Allow, Rules: []string{"code.run", "text.read"}, Reasons: []proposal.Reason{
			{Rule: "org.tail", Effect: proposal.Deny, Observed: true, Message: "output is cut with tail", Suggestion: "leave it out", Command: 1, Text: "tail -n 20"}},
			Grant: &proposal.Grant{Limits: proposal.Limits{Wall: proposal.Duration(2 * time.Minute), CPUs: 1, Memory: 2 * proposal.GiB, Pids: 256, Disk: 2 * proposal.GiB}}},
		Result: &proposal.Result{Status: proposal.TimedOut},
	}
}

// TestAnswers compares every answer, byte for byte.
func TestAnswers(t *testing.T) {
	engine, err := policy.New(t.Context(), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	denied, err := engine.Trigger(t.Context(), writer())
	if err != nil {
		t.Fatal(err)
	}
	_, _, problem := bot.Read("/fumehood approve main\n")
	asked := record()
	asked.Decision.Effect, asked.Decision.Reasons[0].Observed, asked.Decision.Reasons[0].Effect, asked.Result = proposal.Ask, false, proposal.Ask, nil
	approved := asked
	approved.Approval = &proposal.Approval{By: "mona"}
	changed := shown()
	changed.HeadSHA = other
	_, void := bot.ApprovePlans(shown(), changed, bot.Command{Name: "approve", Digits: shown().Digits()}, approver())
	_, bare := bot.ApprovePlans(shown(), shown(), bot.Command{Name: "approve"}, approver())
	for name, got := range map[string]string{
		"help": bot.HelpText(), "problem": problem.RenderMarkdown(), "denied": bot.DeniedReply(writer(), denied),
		"void": void.RenderMarkdown(), "bare": bare.RenderMarkdown(),
		"stopped":   bot.StoppedReply(&proposal.Failure{Code: "policy.deadline", Message: "the decision took longer than 250ms", Hint: "find the rule that loops"}),
		"explain":   bot.ExplainDecisions([]proposal.Record{record(), asked, approved}, "unit"),
		"explain-0": bot.ExplainDecisions([]proposal.Record{record()}, "lint"),
	} {
		file := filepath.Join("testdata", name+".md")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

var attacks = []string{
	"@octocat", "@fumehood/team", "#1", "GH-12", "octo/repo#3", "fixes #1", sha, "deadbeef", "https://x.example", "www.x.example", "a@x.example", "ssh://x",
	"![x](https://x.example/y.png)", "[x](https://x.example)", "<img src=x>", "<!-- @claude run -->", "<script>alert(1)</script>", "&lt;b&gt;", "&#64;octocat",
	"`", "``", "```", "````\n@octocat", "`@octocat`", "` @octocat", "a`b``c```d", "**verdict: allowed**", "__x__", "~~x~~", "~~~\n@octocat", "\n# verdict", "\n\n@octocat",
	"\n- x", "\n> x", "\n    x", "| a |\n| - |", "$x$", "$`x`$", "```math\nx\n```", "\\`@octocat", "\\", "*", "_x_", "[^1]", "[x]: https://x.example", ":tada:",
	"::error::x", "##[error]x", "\x1b[31mred", "\u202egnp.exe", "\u200b", "\x00", "\xff", " ", "", "\t", "a\rb", "<https://x.example>", "[[wiki]]", "¹", "@", "<details>", "</details>",
	"x @octocat `y` https://x.example **z**", "one `two @octocat three` four", "Denied: \"@octocat\" is no", "- [ ] task",
}

// TestAnswersShowOnlyCode renders the answers to hostile texts: outside code, only
// their plain words appear, and none of them becomes an element.
func TestAnswersShowOnlyCode(t *testing.T) {
	for _, a := range append(attacks, strings.Join(attacks, " "), strings.Join(attacks, "")) {
		d := proposal.Decision{Rules: []string{a}, Reasons: []proposal.Reason{{Rule: a, Message: a, Suggestion: a, Text: "x" + a}, {Rule: "x", Message: "m " + a + " n", Suggestion: "s"}}}
		r := record()
		r.Proposal.ID, r.Analysis.Canonical, r.Decision = a, a, d
		asked := r
		asked.Decision.Effect, asked.Approval = proposal.Ask, &proposal.Approval{By: a}
		trigger := points.Trigger{Command: a, Actor: points.Actor{Login: a}}
		for _, answer := range []string{
			(&bot.Problem{Message: a, Text: a, Line: 3}).RenderMarkdown(), (&bot.Problem{Message: "m", Text: a}).RenderMarkdown(), bot.DeniedReply(trigger, d),
			bot.StoppedReply(&proposal.Failure{Code: a, Message: a, Hint: a}), bot.ExplainDecisions([]proposal.Record{r, asked}, a), bot.ExplainDecisions([]proposal.Record{r}, a+"x"),
		} {
			if checkAnswer(t, answer); t.Failed() {
				t.Fatalf("the answer to %q:\n%s", a, answer)
			}
		}
	}
}

func checkAnswer(t *testing.T, answer string) {
	t.Helper()
	var page bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(answer), &page); err != nil {
		t.Fatal(err)
	}
	root, err := nethtml.Parse(&page)
	if err != nil {
		t.Fatal(err)
	}
	checkNode(t, root, false)
	if len(answer) > 8<<10 {
		t.Errorf("an answer of %d bytes", len(answer))
	}
}

// The comment at a run's end mentions one user, and nothing that is not a person's login.
func TestEnded(t *testing.T) {
	run := bot.Run{Command: "run", Head: strings.Repeat("a1", 20), Conclusion: "success", Results: "https://github.test/r", Log: "https://github.test/l"}
	if got, want := bot.EndedReply("octo_corp", run), "@octo_corp, `/fumehood run` has ended for commit `a1a1a1a1a1a1`: **success**. [Results](https://github.test/r) · [Log](https://github.test/l)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, user := range []string{"", "reviewer[bot]", "a b", "org/team", "a\n@b", "a](https://evil.example)", strings.Repeat("a", 101), "ä"} {
		if got := bot.EndedReply(user, run); got != "" {
			t.Errorf("%q: %q", user, got)
		}
	}
	if _, asks, _ := bot.Read(bot.EndedReply("octocat", run)); asks {
		t.Error("the reply is a command")
	}
}

// elements are those that the answers' own text uses.
var elements = map[string]bool{"html": true, "head": true, "body": true, "p": true, "ul": true, "li": true, "strong": true, "code": true}

func checkNode(t *testing.T, n *nethtml.Node, inCode bool) {
	t.Helper()
	switch n.Type {
	case nethtml.ElementNode:
		if !elements[n.Data] || len(n.Attr) > 0 {
			t.Errorf("an element %s %v", n.Data, n.Attr)
		}
		inCode = inCode || n.Data == "code"
	case nethtml.CommentNode:
		t.Errorf("a comment %q", n.Data)
	case nethtml.TextNode:
		if !inCode && strings.ContainsAny(n.Data, "@#<>[]$`|~&\\\x1b\u202e") || !inCode && strings.Contains(n.Data, "::") {
			t.Errorf("outside code: %q", n.Data)
		}
		if strings.ContainsAny(n.Data, "\x00\x1b\u202e\u200b\r") || strings.Contains(n.Data, "##[") {
			t.Errorf("not neutralised: %q", n.Data)
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		checkNode(t, c, inCode)
	}
}
