// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/kit/cputime"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// reviews are comments of AI reviewers with a plan, and the expected document.
var reviews = map[string]struct{ body, want string }{
	"alone":                   {fenced, document},
	"in a review":             {"## Review\n\nI suspect a race.\n" + fenced + "\nLet me know.", document},
	"after a paragraph":       {"I suspect a race.\n" + fenced, document},
	"in details":              {"<details>\n<summary>Plan</summary>\n\n" + fenced + "\n</details>\n", document},
	"after another block":     {"```go\nfunc f() {}\n```\n\n" + fenced, document},
	"after a list":            {"- a\n- b\n\n" + fenced, document},
	"after a quote":           {"> a\n\n" + fenced, document},
	"after a definition":      {"[x]: https://x.example\n" + fenced, document},
	"after a comment":         {"<!-- marker -->\n\n" + fenced, document},
	"after a long rule":       {strings.Repeat("-", 200) + "\n" + fenced, document},
	"with many numbers":       {strings.Repeat("12 7. ", 99) + "\n\n" + fenced, document},
	"before a comment":        {fenced + "<!-- marker -->", document},
	"with CRLF":               {strings.ReplaceAll("a\n\n"+fenced+"b\n", "\n", "\r\n"), strings.ReplaceAll(document, "\n", "\r\n")},
	"with a longer fence":     {"````fumehood\n```\nx\n```\n````", "```\nx\n```\n"},
	"indented":                {"   ~~~fumehood\n   a\n      b\n   ~~~", "a\n   b\n"},
	"with a quoted one":       {"> ```fumehood\n> no\n> ```\n\n" + fenced, document},
	"with one in a block":     {"````\n```fumehood\nno\n```\n````\n" + fenced, document},
	"with one in a comment":   {"<!--\n```fumehood\nno\n```\n-->\n\n" + fenced, document},
	"after an open inline":    {"text <!--\n\n" + fenced, document},
	"with blank lines inside": {"```fumehood\na\n\n\nb\n```", "a\n\n\nb\n"},
	"that is empty":           {"```fumehood\n```", ""},
	"a comment that asks":     {"/fumehood run\n" + fenced, document},
}

func TestFindPlan(t *testing.T) {
	for name, c := range reviews {
		got, ok, p := bot.FindPlan(c.body)
		if !ok || p != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, %+v", name, got, ok, p)
		}
	}
}

// planless are comments without a plan.
var planless = map[string]string{
	"empty": "", "prose": "I would run fumehood here.", "another block": "```yaml\na: fumehood\n```", "inline": "```fumehood``` is the word",
	"quoted": "> ```fumehood\n> a\n> ```", "hidden": "<!--\n```fumehood\na\n```\n-->", "hidden to the end": "<!-- x\n\n```fumehood\na\n```\n",
	"shown as text": "````\n```fumehood\na\n```\n````", "indented code": "a\n\n    ```fumehood\n    a\n    ```", "in a quoted list": "> - ```fumehood\n>   a\n>   ```",
	"another word": "```fumehoods\na\n```", "our own help": bot.HelpText(), "two ticks": "``fumehood\na\n``", "script": "<script>\n```fumehood\na\n```\n</script>",
	"cdata": "<![CDATA[\n```fumehood\na\n```\n]]>", "after a return": "a\r```fumehood\nb",
}

func TestFindPlanFindsNone(t *testing.T) {
	for name, body := range planless {
		if got, ok, p := bot.FindPlan(body); ok || p != nil || got != nil {
			t.Errorf("%s: %q, %v, %+v", name, got, ok, p)
		}
	}
}

// unfit are comments with a plan that must be refused.
var unfit = map[string]struct {
	body, says string
	line       int
}{
	"two":                 {fenced + "\n" + fenced, "more than one", 8},
	"two kinds":           {fenced + "~~~fumehood\na\n~~~\n", "more than one", 7},
	"not closed":          {"a\n\n```fumehood\na\n", "no closing fence", 3},
	"close to HTML":       {"</pre>\ntext\n" + fenced, "between HTML", 1},
	"close to a comment":  {"<!-- marker -->\n" + fenced, "between HTML", 1},
	"deep in quotes":      {fenced + strings.Repeat(">", 65), "too deeply", 7},
	"deep in lists":       {strings.Repeat("1. - ", 40) + "\n\n" + fenced, "too deeply", 1},
	"in a list":           {"- ```fumehood\n  a\n  ```", "in a list", 1},
	"in a deeper list":    {"1. a\n   - b\n\n     ```fumehood\n     a\n     ```", "in a list", 4},
	"with more info":      {"```fumehood yaml\na\n```", "block with ```fumehood", 1},
	"in capitals":         {"```FumeHood\na\n```", "block with ```fumehood", 1},
	"indented with tabs":  {" ```fumehood\n\ta\n ```", "indented with tabs", 2},
	"hidden by a return":  {"a\r<!--\n\n" + fenced + "-->", "carriage return", 1},
	"a return after":      {fenced + "\nx\ry", "carriage return", 8},
	"a NUL":               {"```fumehood\na\x00b\n```", "NUL", 2},
	"not UTF-8":           {fenced + "\xff", "UTF-8", 0},
	"too long":            {fenced + strings.Repeat("x", 65536), "longer than", 0},
	"one fit, one listed": {fenced + "- ```fumehood\n  a\n  ```", "in a list", 7},
}

func TestFindPlanRefuses(t *testing.T) {
	for name, c := range unfit {
		got, ok, p := bot.FindPlan(c.body)
		if !ok || p == nil || got != nil {
			t.Errorf("%s: %q, %v, %+v", name, got, ok, p)
			continue
		}
		if !strings.Contains(p.Message, c.says) || p.Line != c.line {
			t.Errorf("%s: line %d: %q; want line %d: %q", name, p.Line, p.Message, c.line, c.says)
		}
	}
}

// TestFindPlanInTime checks that no comment of GitHub's maximum length takes long.
func TestFindPlanInTime(t *testing.T) {
	lanetest.SkipShort(t)
	for name, part := range map[string]string{
		"quotes": "> ", "lists": "- ", "numbers": "1. ", "fences": "```fumehood\n", "html": "<a>\n", "comments": "<!--\n", "links": "[a]: b\n",
		"brackets": "[", "emphasis": "*a_ ", "ticks": "`", "lines": "\n", "tabs": "\t", "setext": "a\n=\n", "list lines": "- a\n", "nested lists": "- > 1. ",
		"definitions": "[", "tables": "|a|\n|-|\n", "backslashes": `\`, "items": "*\n ", "deep lines": strings.Repeat("> ", 63) + "\n", "quoted lists": "> - a\n>   > b\n",
	} {
		body := strings.Repeat(part, (bot.MaxBody-40)/len(part)) + "\n\n" + "```fumehood\na\n```"
		clock := cputime.Start()
		bot.FindPlan(body)
		bot.Read(body)
		if took := clock.Stop(); took > 10*time.Second {
			t.Errorf("%s take %v of a processor", name, took)
		} else {
			t.Logf("%s take %v", name, took)
		}
	}
}
