// SPDX-License-Identifier: Apache-2.0

package action

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxCommandID is the length of the id of a command, which leaves room for a number.
const maxCommandID = 40

// readPlan returns the input plan, or the plan of the commands in the input run.
func (r *inputReader) readPlan() string {
	document, commands := r.readDocument("plan", "plan.json"), r.readDocument("run", "npm test")
	if strings.TrimSpace(commands) == "" {
		return document
	}
	if strings.TrimSpace(document) != "" {
		r.refuseInput("run", "npm test",
			"is given beside the input plan: write these commands into the plan, or remove it")
		return ""
	}
	return planOfCommands(commands)
}

// planOfCommands returns a plan that runs each line of commands as one shell text. A backslash at the end of a line
// joins it with the next. Blank lines and comments are left out. The plan has as many lines as commands, so that a
// position in it is one in the input.
func planOfCommands(commands string) string {
	var b strings.Builder
	b.WriteString(`{"schema":"` + proposal.PlanSchema + `","proposals":[`)
	used, text, separator := map[string]int{}, "", ""
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(commands, "\r\n", "\n"), " \t\n"), "\n")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\n")
		}
		if joined, ok := strings.CutSuffix(line, `\`); ok && i+1 < len(lines) {
			text += joined
			continue
		}
		text = strings.TrimSpace(text + line)
		if text != "" && !strings.HasPrefix(text, "#") {
			one, err := json.Marshal(map[string]string{"id": commandID(text, used), "run": text})
			if err != nil {
				panic("action: internal error: a command cannot be encoded: " + err.Error())
			}
			b.WriteString(separator)
			b.Write(one)
			separator = ","
		}
		text = ""
	}
	b.WriteString("]}\n")
	return b.String()
}

var (
	commandWord = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)
	notInID     = pattern.New(`[^A-Za-z0-9]+`)
)

// commandID returns an id that no earlier command of used has: the plain words with which text begins, at most two,
// such as npm-test. The same text has the same id in the next run, as long as no line before it begins likewise.
func commandID(text string, used map[string]int) string {
	var words []string
	for _, word := range strings.Fields(text) {
		if len(words) == 2 || !commandWord.MatchString(word) {
			break
		}
		words = append(words, notInID.ReplaceAllString(word, "-"))
	}
	id := strings.Trim(strings.Join(words, "-"), "-")
	if id == "" {
		id = "command"
	}
	id = strings.TrimRight(id[:min(len(id), maxCommandID)], "-")
	used[id]++
	if n := used[id]; n > 1 {
		id = fmt.Sprintf("%s.%d", id, n) // no id of words has a dot
	}
	return id
}
