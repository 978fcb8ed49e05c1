// SPDX-License-Identifier: Apache-2.0

package bot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/pkg/plan"
)

const (
	document = "schema: fumehood.plan/v1\nproposals:\n  - id: unit\n    run: go test ./...\n"
	fenced   = "```fumehood\n" + document + "```\n"
	sha      = "0123456789abcdef0123456789abcdef01234567"
)

func lineDocument(run string) string {
	return `{"schema":"fumehood.plan/v1","proposals":[{"id":"comment","run":"` + run + `"}]}` + "\n"
}

// asks are comments that Read accepts, with the expected commands.
var asks = map[string]struct {
	body string
	want bot.Command
}{
	"run a line":              {"/fumehood run go test ./...", bot.Command{Name: "run", Line: "go test ./...", Plan: []byte(lineDocument("go test ./..."))}},
	"as GitHub sends it":      {"/fumehood run go test ./...\r\n", bot.Command{Name: "run", Line: "go test ./...", Plan: []byte(lineDocument("go test ./..."))}},
	"blank lines around":      {"\r\n \t\n/fumehood   run   go  vet  \n\n \n", bot.Command{Name: "run", Line: "go  vet", Plan: []byte(lineDocument("go  vet"))}},
	"a line with quotes":      {`/fumehood run grep "a < b" x && y`, bot.Command{Name: "run", Line: `grep "a < b" x && y`, Plan: []byte(lineDocument(`grep \"a < b\" x && y`))}},
	"a line in other letters": {"/fumehood run grep Größe README.md", bot.Command{Name: "run", Line: "grep Größe README.md", Plan: []byte(lineDocument("grep Größe README.md"))}},
	"a substitution":          {"/fumehood run echo `date`", bot.Command{Name: "run", Line: "echo `date`", Plan: []byte(lineDocument("echo `date`"))}},
	"run a plan":              {"/fumehood run\n" + fenced, bot.Command{Name: "run", Plan: []byte(document)}},
	"a plan after a gap":      {"/fumehood run \n\n\n" + fenced + "\n\n", bot.Command{Name: "run", Plan: []byte(document)}},
	"a plan with CRLF":        {strings.ReplaceAll("/fumehood run\n"+fenced, "\n", "\r\n"), bot.Command{Name: "run", Plan: []byte(strings.ReplaceAll(document, "\n", "\r\n"))}},
	"a longer fence":          {"/fumehood run\n`````fumehood\n```\na\n```\n``````\n", bot.Command{Name: "run", Plan: []byte("```\na\n```\n")}},
	"tildes":                  {"/fumehood run\n~~~ fumehood \na\n~~~", bot.Command{Name: "run", Plan: []byte("a\n")}},
	"tildes hold backticks":   {"/fumehood run\n~~~fumehood\n```\n~~~", bot.Command{Name: "run", Plan: []byte("```\n")}},
	"an indented fence":       {"/fumehood run\n   ```fumehood\n   a:\n     b\n c\n  ```", bot.Command{Name: "run", Plan: []byte("a:\n  b\nc\n")}},
	"no closing fence inside": {"/fumehood run\n```fumehood\n    ```\n``` x\n`` \n```\n", bot.Command{Name: "run", Plan: []byte("    ```\n``` x\n`` \n")}},
	"an empty plan":           {"/fumehood run\n```fumehood\n```", bot.Command{Name: "run"}},
	"approve":                 {"/fumehood approve " + sha, bot.Command{Name: "approve", Digits: sha}},
	"approve by 8":            {"/fumehood approve 3fa2b91c\r\n", bot.Command{Name: "approve", Digits: "3fa2b91c"}},
	"approve by 64":           {"/fumehood approve " + strings.Repeat("0a", 32), bot.Command{Name: "approve", Digits: strings.Repeat("0a", 32)}},
	"approve without digits":  {"/fumehood approve", bot.Command{Name: "approve"}}, // see ApprovePlans
	"rerun":                   {"/fumehood rerun", bot.Command{Name: "rerun"}},
	"explain":                 {"/fumehood explain unit.2_a-b", bot.Command{Name: "explain", ID: "unit.2_a-b"}},
	"help":                    {"/fumehood help\n", bot.Command{Name: "help"}},
}

func TestRead(t *testing.T) {
	for name, c := range asks {
		t.Run(name, func(t *testing.T) {
			got, ok, p := bot.Read(c.body)
			if p != nil || !ok {
				t.Fatalf("%v, %+v", ok, p)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// silences are comments that are not addressed to fumehood.
var silences = map[string]string{
	"empty": "", "blank": " \n\r\n\t", "words": "Thanks!", "later": "Please\n/fumehood run ls", "quoted": "> /fumehood run ls",
	"indented": " /fumehood run ls", "in code": "```\n/fumehood run ls\n```", "inline": "`/fumehood run ls`", "a list": "- /fumehood run ls",
	"another case": "/Fumehood run ls", "longer word": "/fumehoods run ls", "a path": "/fumehood/run ls", "no slash": "fumehood run ls",
	"html": "<!-- -->/fumehood run ls", "invisible before": "\u200b/fumehood run ls", "byte order mark": "\ufeff/fumehood run ls",
	"return before": "\r/fumehood run ls", "no-break space": "\u00a0/fumehood run ls", "no-break after": "/fumehood\u00a0run ls", "only the plan": fenced,
	"quoted help": "/ fumehood help", "escaped": `\/fumehood help`,
}

func TestReadIsSilent(t *testing.T) {
	for name, body := range silences {
		if c, ok, p := bot.Read(body); ok || p != nil || !cmp.Equal(c, bot.Command{}) {
			t.Errorf("%s: %+v, %v, %+v", name, c, ok, p)
		}
	}
}

// wrongs are comments that are addressed to fumehood without a valid command.
var wrongs = map[string]struct {
	body, says string
	line       int
}{
	"nothing":                   {"/fumehood", "requires a command", 1},
	"nothing but blanks":        {"\n/fumehood  \n", "requires a command", 2},
	"another command":           {"/fumehood deploy", "unknown command", 1},
	"another case":              {"/fumehood RUN ls", "unknown command", 1},
	"an option":                 {"/fumehood --help", "unknown command", 1},
	"run and nothing":           {"/fumehood run", "a command line, or a plan", 1},
	"run and blanks":            {"/fumehood run\n \n", "a command line, or a plan", 1},
	"two lines":                 {"/fumehood run ls\nrm -r x", "remove this line", 2},
	"two commands":              {"/fumehood run ls\n\n/fumehood run pwd", "remove this line", 3},
	"a line and a plan":         {"/fumehood run ls\n" + fenced, "remove this line", 2},
	"a line and a quote":        {"/fumehood run ls\n\n> On Monday you wrote", "remove this line", 3},
	"a line and hidden html":    {"/fumehood run ls\n<!-- x -->", "remove this line", 2},
	"a quoted line":             {"/fumehood run `go test ./...`", "remove the backticks", 1},
	"a block on the line":       {"/fumehood run ```fumehood\na\n```", "remove this line", 2},
	"a block in the line":       {"/fumehood run ```ls```", "on a new line", 1},
	"prose before the plan":     {"/fumehood run\nplease\n" + fenced, "block with ```fumehood", 2},
	"prose after the plan":      {"/fumehood run\n" + fenced + "thanks", "remove this line", 8},
	"two plans":                 {"/fumehood run\n" + fenced + fenced, "remove this line", 8},
	"another block":             {"/fumehood run\n```yaml\na: b\n```", "block with ```fumehood", 2},
	"a block with no name":      {"/fumehood run\n```\na: b\n```", "block with ```fumehood", 2},
	"a longer name":             {"/fumehood run\n```fumehood yaml\na: b\n```", "block with ```fumehood", 2},
	"the name in capitals":      {"/fumehood run\n```Fumehood\na: b\n```", "block with ```fumehood", 2},
	"a plan not closed":         {"/fumehood run\n```fumehood\na: b\n", "no closing fence", 2},
	"closed by another":         {"/fumehood run\n```fumehood\na: b\n~~~\n", "no closing fence", 2},
	"closed too short":          {"/fumehood run\n````fumehood\na: b\n```\n", "no closing fence", 2},
	"closed too deep":           {"/fumehood run\n```fumehood\na: b\n    ```\n", "no closing fence", 2},
	"a plan in a quote":         {"/fumehood run\n> ```fumehood\n> a\n> ```", "block with ```fumehood", 2},
	"a plan too deep":           {"/fumehood run\n    ```fumehood\n    a\n    ```", "block with ```fumehood", 2},
	"a plan behind a tab":       {"/fumehood run\n\t```fumehood\na\n```", "block with ```fumehood", 2},
	"a plan indented with tabs": {"/fumehood run\n  ```fumehood\n\ta\n  ```", "indented with tabs", 3},
	"a return in the plan":      {"/fumehood run\n```fumehood\na\rb\n```", "carriage return", 3},
	"a fence after a return":    {"/fumehood run\n```fumehood\na\r```\nb\n```", "carriage return", 3},
	"a NUL in the plan":         {"/fumehood run\n```fumehood\na\x00\n```", "NUL", 3},
	"approve too little":        {"/fumehood approve 0123456", "8 to 64", 1},
	"approve capitals":          {"/fumehood approve 0123456789AB", "8 to 64", 1},
	"approve a branch":          {"/fumehood approve main", "8 to 64", 1},
	"approve too much":          {"/fumehood approve " + strings.Repeat("a", 65), "8 to 64", 1},
	"approve two":               {"/fumehood approve " + sha + " " + sha, "8 to 64", 1},
	"approve with more":         {"/fumehood approve " + sha + " please", "8 to 64", 1},
	"approve with a line":       {"/fumehood approve " + sha + "\nbut not yet", "remove this line", 2},
	"rerun with more":           {"/fumehood rerun all", "no arguments", 1},
	"rerun with a line":         {"/fumehood rerun\nall", "remove this line", 2},
	"rerun with a plan":         {"/fumehood rerun\n" + fenced, "remove this line", 2},
	"explain nothing":           {"/fumehood explain", "id of one command", 1},
	"explain two":               {"/fumehood explain a b", "id of one command", 1},
	"explain markdown":          {"/fumehood explain **a**", "id of one command", 1},
	"explain too much":          {"/fumehood explain " + strings.Repeat("a", 65), "id of one command", 1},
	"help with more":            {"/fumehood help me", "no arguments", 1},
	"too long a line":           {"/fumehood run " + strings.Repeat("a", 16<<10+1), "longer than", 1},
	"too long a comment":        {"/fumehood run\n```fumehood\n" + strings.Repeat("ä", 65536) + "\n```", "longer than 65,536", 0},
	"not UTF-8":                 {"/fumehood run l\xffs", "UTF-8", 0},
	"not UTF-8 in the plan":     {"/fumehood run\n```fumehood\n\xff\n```", "UTF-8", 0},
}

func TestReadRefuses(t *testing.T) {
	for name, c := range wrongs {
		t.Run(name, func(t *testing.T) {
			refused(t, c.body, c.says, c.line)
		})
	}
}

// TestReadRefusesWhatCannotBeSeen checks that the text that runs is the text that a
// person reads.
func TestReadRefusesWhatCannotBeSeen(t *testing.T) {
	for _, r := range []rune{0, '\t', '\r', '\v', '\f', 0x1b, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x2000, 0x200b, 0x200c, 0x200d, 0x200e,
		0x202a, 0x202e, 0x2028, 0x2029, 0x2060, 0x2066, 0x2069, 0x3000, 0x3164, 0xfe0f, 0xfeff, 0xfffd, 0xe0041, 0xe0100, 0xe000} {
		for _, body := range []string{"/fumehood run ls" + string(r) + "x", "/fumehood run ls" + string(r) + " x", "/fumehood explain a" + string(r)} {
			if r == '\r' && strings.HasSuffix(body, "\r") {
				continue // which ends the line
			}
			refused(t, body, "invisible character", 1)
		}
	}
}

func refused(t *testing.T, body, says string, line int) {
	t.Helper()
	got, ok, p := bot.Read(body)
	if !ok || p == nil || !cmp.Equal(got, bot.Command{}) {
		t.Fatalf("%q: %+v, %v, %+v", body, got, ok, p)
	}
	if !strings.Contains(p.Message, says) || p.Line != line {
		t.Errorf("%q: line %d: %q; want line %d: %q", body, p.Line, p.Message, line, says)
	}
	if p.Line > 0 && !strings.Contains(p.RenderMarkdown(), "/fumehood approve") {
		t.Errorf("%q: the answer does not say how to write it: %s", body, p.RenderMarkdown())
	}
}

// TestLinesDecode checks that the plan made from a command line is accepted by the
// plan decoder and contains that line.
func TestLinesDecode(t *testing.T) {
	for _, run := range []string{"ls", `grep "x" 'y' \z`, "a && b | c > d; e", "echo <&>", "printf '%s\\n' $x", "echo ü 漢 🙂", strings.Repeat("a", 16<<10)} {
		c, _, p := bot.Read("/fumehood run " + run)
		if p != nil {
			t.Fatalf("%q: %+v", run, p)
		}
		decoded, problems := plan.Decode(c.Plan, "")
		if len(problems) > 0 || len(decoded.Proposals) != 1 || decoded.Proposals[0].Run != run || decoded.Proposals[0].ID != bot.LineID {
			t.Errorf("%q: %+v %+v", run, decoded, problems)
		}
	}
}

func TestStarts(t *testing.T) {
	for name, want := range map[string]bool{"run": true, "rerun": true, "approve": true, "review": true, "explain": false, "help": false, "": false} {
		if got := (bot.Command{Name: name}).StartsRun(); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
