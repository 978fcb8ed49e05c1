// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const models = "testdata/models.txtar"

var modelCharacters = strings.NewReplacer("<U+FEFF>", "\ufeff", "<U+200B>", "\u200b", "<U+202E>", "\u202e", "<U+2066>", "\u2066",
	"<U+00A0>", "\u00a0", "<CR>", "\r", "<TAB>", "\t", "<END>\n", "")

// modelPlans returns the plans of testdata/models.txtar by name, without their outcomes.
func modelPlans(t testing.TB) (names []string, plans map[string]string, all *txtar.Archive) {
	t.Helper()
	all = txtar.Parse(golden.Read(t, models))
	plans = map[string]string{}
	for _, f := range all.Files {
		if name, isOutcome := strings.CutSuffix(f.Name, " becomes"); !isOutcome {
			names = append(names, name)
			plans[name] = modelCharacters.Replace(string(f.Data))
		}
	}
	return names, plans, all
}

// What happens to plans as models write them is a table for people. Each problem has a place in
// the plan and is there once.
func TestModels(t *testing.T) {
	names, plans, all := modelPlans(t)
	if len(names) < 50 {
		t.Errorf("%d plans", len(names))
	}
	table := txtar.Archive{Comment: all.Comment}
	for _, name := range names {
		lines := outcome(t, plans[name], name)
		for i, line := range lines {
			for _, earlier := range lines[:i] {
				if line == earlier {
					t.Errorf("%s: twice: %s", name, line)
				}
			}
		}
		for _, f := range all.Files {
			if f.Name == name {
				table.Files = append(table.Files, f)
			}
		}
		table.Files = append(table.Files, txtar.File{Name: name + " becomes", Data: []byte(strings.Join(lines, "\n") + "\n")})
	}
	golden.Compare(t, models, txtar.Format(&table))
}

// outcome returns what becomes of a plan, in lines.
func outcome(t *testing.T, document, name string) (lines []string) {
	t.Helper()
	p, problems := Decode([]byte(document), name)
	checkProblems(t, problems)
	for _, problem := range problems {
		lines = append(lines, "rejected "+Describe(name, problem))
	}
	for _, one := range p.Proposals {
		if one.Invalid != nil {
			for _, problem := range one.Invalid.Problems {
				lines = append(lines, fmt.Sprintf("refused %s: %s", one.ID, Describe(name, problem)))
			}
			continue
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(proposal.Proposal{Run: one.Run, Argv: one.Argv, Env: one.Env, Timeout: one.Timeout, Limits: one.Limits, Needs: one.Needs,
			Outputs: one.Outputs, Network: one.Network})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "accepted "+one.ID+": "+strings.Replace(strings.TrimSpace(text.String()), `"id":"",`, "", 1))
	}
	return lines
}

// A text without quotes in YAML, in any place that a command has, is the text that is
// decided, or only its proposal is refused.
func TestPlainTextIsUnchanged(t *testing.T) {
	lanetest.SkipShort(t)
	tokens := []string{"!", "#", " #", ": ", ":", "'", `"`, "[", "]", "{", "}", "&", "*", "|", ">", "%", "@", "`", ", ", ",", `\`, "a", "b c", "$x",
		" ", "- ", "? ", "~", "<<", "1", "yes", "--", "=", "\t", "é"}
	random := rand.New(rand.NewPCG(1, 2))
	forms := []struct{ before, after string }{
		{"  - id: a\n    run: ", "\n"}, {"  - id: a\n    argv:\n      - echo\n      - ", "\n"}, {"  - {id: a, run: ", "}\n"},
		{"  - id: a\n    argv: [echo, ", "]\n"}, {"  - id: a\n    run: ls\n    env: {A: ", "}\n"}, {"  - id: a\n    run: ls\n    env:\n      A: ", "\n"},
		{"  - id: a\n    language: sh\n    code: ", "\n"}, {"  - id: a\n    run: ls\n    stdin: ", "\n"},
	}
	accepted, refused := 0, 0
	for range 4000 {
		written := ""
		for range 1 + random.IntN(5) {
			written += tokens[random.IntN(len(tokens))]
		}
		form := forms[random.IntN(len(forms))]
		document := "schema: fumehood.plan/v1\nproposals:\n" + form.before + written + form.after + "  - id: good\n    run: echo hi\n"
		p, problems := Decode([]byte(document), "p.yaml")
		if len(problems) > 0 || p.Proposals[len(p.Proposals)-1].Run != "echo hi" {
			t.Fatalf("%v\n%s", problems, document)
		}
		one := p.Proposals[0]
		if one.Invalid != nil {
			refused++
			continue
		}
		accepted++
		got := one.Run
		switch {
		case one.Code != "":
			got = one.Code
		case one.Stdin != "" || strings.Contains(form.before, "stdin"):
			got = one.Stdin
		case len(one.Argv) > 0:
			got = strings.Join(one.Argv[1:], "\n")
		case strings.Contains(form.before, "A: "):
			got = one.Env["A"]
		}
		want := strings.Trim(written, " \t")
		if len(form.after) > 1 {
			want = strings.TrimRight(want, " \t,") // a comma may end a list
		}
		styled := want == "~" || strings.HasPrefix(want, "|") || strings.HasPrefix(want, ">") || strings.HasPrefix(want, `"`) || strings.HasPrefix(want, "'")
		if got != want && !styled && !sameWords(one.Argv, want) {
			t.Errorf("%q is read as %q", written, got)
		}
	}
	if accepted < 500 || refused < 500 {
		t.Errorf("%d accepted, %d refused", accepted, refused)
	}
}

// sameWords reports whether what is written in brackets are the words of argv, of which commas and
// blanks show the ends.
func sameWords(argv []string, written string) bool {
	return len(argv) > 2 && "echo, "+strings.Trim(written, " \t") == strings.Join(argv, ", ")
}
