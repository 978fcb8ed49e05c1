// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/bot"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What follows reads back what the program suggests. It finds suggestions by their form, in every
// text of the source, so that a new one cannot be left out: a flag, a command after "fumehood", a
// comment after "/fumehood", and a line of YAML in backticks.

// A sourceText is a constant text of the program, with a hole in place of each value.
type sourceText struct{ file, text string }

const hole = "\x00"

// sourceTexts returns the texts of packages that have more than one word. The packages that know
// other programs' options, and those of tests, have none.
func sourceTexts(t *testing.T) (all []sourceText) {
	t.Helper()
	for _, root := range []string{"../../internal", "../../pkg", "."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && slices.Contains([]string{"testdata", "facts", "parse", "setup", "githubtest"}, d.Name()) {
				return fs.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				s := textOf(e)
				if s == hole {
					return true
				}
				if strings.Contains(s, " ") {
					all = append(all, sourceText{strings.TrimPrefix(path, "../../"), s})
				}
				return false
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// textOf returns the text that e is, with holes, or only a hole.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.BinaryExpr:
		if s := textOf(e.X) + textOf(e.Y); e.Op == token.ADD && strings.Trim(s, hole) != "" {
			return s
		}
	case *ast.ParenExpr:
		return textOf(e.X)
	}
	return hole
}

var (
	flagWord     = regexp.MustCompile(`(?:^|[\s(])--([a-z][a-z0-9-]*[a-z0-9])\b`)
	commandWords = regexp.MustCompile(`(?:run:? |see:? |with: |use |: |` + "`" + `|\()fumehood ([a-z]+(?: [a-z]+)*)((?: --[a-z][a-z-]*| [A-Z]+\b)*)`)
	commentWords = regexp.MustCompile("`(/fumehood [^`]*)`")
	backticked   = regexp.MustCompile("`([^`]+)`")
	yamlField    = regexp.MustCompile(`^[a-z][a-z_-]*:(?: \S.*)?$`)
)

// foreign are the flags of other programs that texts name.
var foreign = []string{"no-local", "cgroupns", "preserve-env", "git", "no-daemon", "offline", "stat", "was-ever-seen", "capabilities", "randomly-seed"}

// afterName are words that follow the program's name where no command is meant: run fumehood as root.
var afterName = []string{"as", "again", "before", "from", "without", "is"}

// TestSuggestedFlags holds that every flag that a text names is one of a command, and that every
// command that it names exists and has the flags that follow.
func TestSuggestedFlags(t *testing.T) {
	lanetest.SkipShort(t)
	root := prepared(t)
	known := map[string]bool{}
	texts := sourceTexts(t)
	each(root, func(cmd *cobra.Command) {
		for _, instead := range cmd.Annotations { // of cli.Suggest
			texts = append(texts, sourceText{cmd.CommandPath(), "use " + instead})
		}
		add := func(f *pflag.Flag) { known[f.Name] = true }
		cmd.Flags().VisitAll(add)
		cmd.InheritedFlags().VisitAll(add)
	})
	flags, commands := 0, 0
	for _, s := range texts {
		for _, m := range flagWord.FindAllStringSubmatch(s.text, -1) {
			flags++
			if !known[m[1]] && !slices.Contains(foreign, m[1]) {
				t.Errorf("%s: no command has the flag --%s: %q", s.file, m[1], s.text)
			}
		}
		for _, m := range commandWords.FindAllStringSubmatch(s.text, -1) {
			words := strings.Fields(m[1])
			if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(afterName, w) }); i >= 0 {
				words = words[:i]
			}
			if len(words) == 0 {
				continue
			}
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == root {
				t.Errorf("%s: there is no command %q: %q", s.file, m[1], s.text)
				continue
			}
			commands++
			if len(rest) > 0 && cmd.HasSubCommands() {
				t.Errorf("%s: there is no command %q: %q", s.file, m[1], s.text)
			}
			for _, f := range flagWord.FindAllStringSubmatch(m[2], -1) {
				if cmd.Flag(f[1]) == nil {
					t.Errorf("%s: fumehood %s has no flag --%s: %q", s.file, cmd.Name(), f[1], s.text)
				}
			}
		}
	}
	if flags < 150 || commands < 40 {
		t.Errorf("%d flags and %d commands were found", flags, commands)
	}
}

// TestSuggestedLines holds that a line of YAML in backticks is one that the configuration, a
// proposal, the action or a workflow can have, and that a suggested comment is a command.
func TestSuggestedLines(t *testing.T) {
	lanetest.SkipShort(t)
	inputs := actionInputs(t)
	lines, comments := 0, 0
	for _, s := range sourceTexts(t) {
		for _, m := range commentWords.FindAllStringSubmatch(s.text, -1) {
			comments++
			comment := strings.NewReplacer("%s", "rerun", hole, "rerun", "%.12s", "").Replace(m[1])
			if c, addressed, problem := bot.Read(comment); !addressed || problem != nil {
				t.Errorf("%s: %q is not a command: %+v %v", s.file, m[1], c, problem)
			}
		}
		for _, m := range backticked.FindAllStringSubmatch(s.text, -1) {
			line := strings.NewReplacer("%s", "run", hole, "a").Replace(m[1])
			if !yamlField.MatchString(line) {
				continue
			}
			lines++
			if !readsBack(line, inputs) {
				t.Errorf("%s: no document has the line %q", s.file, m[1])
			}
		}
	}
	if lines < 4 || comments < 2 {
		t.Errorf("%d lines and %d comments were found", lines, comments)
	}
}

// actionInputs returns the inputs of action.yml.
func actionInputs(t *testing.T) map[string]any {
	t.Helper()
	var action struct{ Inputs map[string]any }
	if err := yaml.Unmarshal(jobtest.ReadFile(t, "../../action.yml"), &action); err != nil {
		t.Fatal(err)
	}
	return action.Inputs
}

// ofWorkflows are the keys of workflows that texts name.
var ofWorkflows = []string{"permissions", "concurrency", "on", "with", "uses", "run"}

// readsBack reports whether a line is accepted by the reader that it is for.
func readsBack(line string, inputs map[string]any) bool {
	name, value, _ := strings.Cut(line, ":")
	if slices.Contains(ofWorkflows, name) || inputs[name] != nil {
		return true
	}
	if value == "" || value == " |" { // the begin of a field, whose name is checked
		line = name + ": {}"
	}
	accepted := func(problems []proposal.Problem) bool {
		return !slices.ContainsFunc(problems, func(p proposal.Problem) bool {
			return value != "" || strings.Contains(p.Message, "unknown field")
		})
	}
	if _, problems := config.Decode([]byte("schema: fumehood.config/v1\n"+line+"\n"), "x.yml"); accepted(problems) {
		return true
	}
	p, problems := plan.Decode([]byte("schema: fumehood.plan/v1\nproposals:\n  - id: a\n    run: ls\n    "+line+"\n"), "x.yml")
	return accepted(append(problems, p.Refused()...))
}

var (
	shownLine = regexp.MustCompile("(?:`|<code>)((?:limits|timeout|network|checkout|phase): [^`<]*)(?:`|</code>)")
	shownRun  = regexp.MustCompile(`(?m)^\s*(?:= )?allowed: (.+)$`)
	colors    = regexp.MustCompile(`(?:\x1b|␛)\[[0-9;]*m`)
)

// TestShownSuggestions holds that what golden files show as a suggestion is read back, and that a
// command that they show as allowed is one.
func TestShownSuggestions(t *testing.T) {
	lanetest.SkipShort(t)
	inputs := actionInputs(t)
	lines, texts := 0, map[string]string{}
	for _, root := range []string{"../../testdata", "../../internal", "../../pkg", "../../docs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, "testdata") && !strings.Contains(path, "docs") || strings.Contains(path, "/fuzz/") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil || len(data) > 4<<20 {
				return err
			}
			for _, m := range shownLine.FindAllStringSubmatch(string(data), -1) {
				lines++
				if !readsBack(m[1], inputs) {
					t.Errorf("%s shows %q, which no reader accepts", path, m[1])
				}
			}
			if !strings.HasSuffix(path, ".txtar") { // which have policies of their own
				for _, m := range shownRun.FindAllStringSubmatch(string(data), -1) {
					texts[colors.ReplaceAllString(m[1], "")] = path
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"mixed", "fork"} {
		path := "../../testdata/report/" + name + ".json"
		var r proposal.Report
		if err := json.Unmarshal(jobtest.ReadFile(t, path), &r); err != nil {
			t.Fatal(err)
		}
		for _, record := range r.Records {
			for _, reason := range record.Decision.Reasons {
				for _, text := range reason.Alternatives {
					texts[text] = path
				}
			}
		}
	}
	var p proposal.Plan
	for text := range texts {
		p.Proposals = append(p.Proposals, proposal.Proposal{ID: "p" + strconv.Itoa(len(p.Proposals)), Run: text})
	}
	g, err := runs.NewGate(t.Context(), gate.Options{DecideOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	records, err := g.Check(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Decision.Effect != proposal.Allow {
			t.Errorf("%s shows %q as allowed; it is %v by %v", texts[r.Proposal.Run], r.Proposal.Run, r.Decision.Effect, r.Decision.Rules)
		}
	}
	if lines < 10 || len(texts) == 0 {
		t.Errorf("%d lines and %d commands were found", lines, len(texts))
	}
}
