// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	word = "/fumehood"
	// maxLine is a plan's limit for shell text.
	maxLine = 16 << 10
)

var (
	approvalDigits = pattern.New(`^[0-9a-f]{8,64}$`)
	proposalID     = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// Read parses the command in body. It returns false, and no Problem, if the comment
// is not addressed to fumehood. Otherwise either the Command or the Problem is set.
// After a Problem, nothing may be started.
func Read(body string) (Command, bool, *Problem) {
	all := splitLines(body)
	first := firstLine(all)
	if first < 0 || !isBotCommand(all[first].text) {
		return Command{}, false, nil
	}
	if p := checkReadable(body); p != nil {
		return Command{}, true, p
	}
	c, p := readCommand(all, first)
	if p != nil {
		return Command{}, true, p
	}
	return c, true, nil
}

func firstLine(all []line) int {
	for i, l := range all {
		if !isBlank(l.text) {
			return i
		}
	}
	return -1
}

func isBotCommand(first string) bool {
	rest, ok := strings.CutPrefix(first, word)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

func readCommand(all []line, first int) (Command, *Problem) {
	name, rest := cutWord(strings.TrimPrefix(all[first].text, word))
	c := Command{Name: name}
	if p := refuseInvisible(all[first].text, first); p != nil {
		return c, p
	}
	if name == "run" && rest == "" {
		return readBlock(all, first)
	}
	if p := requireAlone(all[first+1:], name, first+1); p != nil {
		return c, p
	}
	return c, c.parseArgument(rest, first)
}

// parseArgument parses the text after the command's name on its line.
func (c *Command) parseArgument(rest string, at int) *Problem {
	switch c.Name {
	case "run":
		return c.commandLine(rest, at)
	case "approve":
		c.Digits = rest
		if rest != "" && !approvalDigits.MatchString(rest) {
			return newUsageProblem(at, rest,
				"approve requires the digits that are shown beside the commands (8 to 64 lowercase hex digits) and nothing else")
		}
	case "explain":
		c.ID = rest
		if !proposalID.MatchString(rest) {
			return newUsageProblem(at, rest, "explain requires the id of one command and nothing else")
		}
	case "rerun", "review", "help":
		if rest != "" {
			return newUsageProblem(at, rest, c.Name+" takes no arguments")
		}
	case "":
		return newUsageProblem(at, "", word+" requires a command")
	default:
		return newUsageProblem(at, c.Name, "unknown command")
	}
	return nil
}

func (c *Command) commandLine(rest string, at int) *Problem {
	switch {
	case len(rest) > maxLine:
		return newUsageProblem(at, "", "the command line is longer than "+text.Size(maxLine))
	case strings.HasPrefix(rest, "```"), strings.HasPrefix(rest, "~~~"):
		return newUsageProblem(at, "", "begin a block on a new line")
	case len(rest) > 1 && rest[0] == '`' && rest[len(rest)-1] == '`':
		return newUsageProblem(at, rest, "remove the backticks around the command line; a shell would interpret them")
	}
	c.Line, c.Plan = rest, linePlan(rest)
	return nil
}

// linePlan returns the same document for every user and at any time, so that an
// approval of it stays valid.
func linePlan(run string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	plan := proposal.Plan{Schema: proposal.PlanSchema, Proposals: []proposal.Proposal{{ID: LineID, Run: run}}}
	if err := e.Encode(plan); err != nil {
		panic("bot: internal error: a plan has no JSON: " + err.Error())
	}
	return b.Bytes()
}

// cutWord splits s after the first word; both parts are trimmed.
func cutWord(s string) (first, rest string) {
	s = strings.Trim(s, " \t")
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], strings.TrimLeft(s[i:], " \t")
	}
	return s, ""
}

// refuseInvisible refuses a line with invisible characters.
func refuseInvisible(s string, at int) *Problem {
	for _, r := range s {
		if text.IsHidden(r) || r == utf8.RuneError {
			return newUsageProblem(at, string(r), "the line has an invisible character")
		}
	}
	return nil
}

// requireAlone requires that all lines of rest are blank.
func requireAlone(rest []line, name string, at int) *Problem {
	for i, l := range rest {
		if !isBlank(l.text) {
			return newUsageProblem(at+i, l.text, name+" must be alone in its comment; remove this line")
		}
	}
	return nil
}

func newUsageProblem(at int, untrusted, message string) *Problem {
	return &Problem{Message: message, Text: untrusted, Line: at + 1, Usage: true}
}
