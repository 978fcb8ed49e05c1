// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/google/go-cmp/cmp"
)

// Scripts that TestE2EScripts runs are pages: their commands, what the pages say they print, and their files.
// -update writes the scripts.
func TestPagesAreScripts(t *testing.T) {
	for name, script := range map[string]string{"SECURITY-TEAM.md": "engineer_path.txtar", "CHECKPOINTS.md": "checkpoints.txtar", "INCIDENTS.md": "incident_page.txtar"} {
		page, file := string(jobtest.ReadFile(t, "../../docs/"+name)), "../../testdata/script/e2e/"+script
		if n := strings.Count(page, "\n"); n > 150 {
			t.Errorf("%s has %d lines", name, n)
		}
		want := "# What docs/" + name + " says is so.\n" + scriptOf(page)
		if *golden.Update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(jobtest.ReadFile(t, file)), want); diff != "" {
			t.Errorf("%s is not %s; -update writes it (-script +page):\n%s", script, name, diff)
		}
	}
}

// pageBlock is a heading of a page, or a fenced block with its language.
var pageBlock = regexp.MustCompile("(?ms)^## (.*?)$|^```(\\w+)\n(.*?)^```$")

// scriptOf is a page as a script: its commands in order, and then the files that it says to save.
func scriptOf(page string) string {
	script, files, last := "", "", 0
	for _, at := range pageBlock.FindAllStringSubmatchIndex(page, -1) {
		before := page[last:at[0]]
		last = at[1]
		switch found := saved.FindStringSubmatch(before); {
		case at[2] >= 0:
			script += "\n# " + page[at[2]:at[3]] + "\n"
		case page[at[4]:at[5]] == "console":
			script += scriptSteps(page[at[6]:at[7]])
		case found != nil:
			files += fmt.Sprintf("-- %s --\n%s", found[1], page[at[6]:at[7]])
		}
	}
	return script + "\n" + files
}

// logEntries is how many entries a log has, which depends on when its events were written.
var logEntries = regexp.MustCompile(`(sealed(?: and complete)?): \d+ entries`)

// scriptSteps are the commands of a console block, each with the lines that it must print.
// Three dots match anything.
func scriptSteps(block string) (steps string) {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		stream := "stdout"
		if strings.HasPrefix(line, "fumehood: ") || strings.HasPrefix(line, "checkpoints.sh: ") {
			stream = "stderr"
		}
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps += "exec sh -c " + quote(command) + "\n"
		} else if line != "..." {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".*")
			pattern = logEntries.ReplaceAllString(pattern, "$1: [0-9]+ entries")
			steps += stream + " " + quote("^"+pattern+"$") + "\n"
		}
	}
	return steps
}
