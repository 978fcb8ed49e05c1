// SPDX-License-Identifier: Apache-2.0

package bot

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxItems is the maximum number of reasons or proposals in an answer.
const maxItems = 10

const usage = "````text\n" +
	"/fumehood run <command line>    run one command\n" +
	"/fumehood run                   run the plan in the block below it:\n" +
	"```fumehood\n" +
	"schema: fumehood.plan/v1\n" +
	"proposals:\n" +
	"  - id: unit\n" +
	"    run: go test ./...\n" +
	"```\n" +
	"/fumehood approve <digits>      approve waiting commands: the digits are shown beside them\n" +
	"/fumehood rerun                 run the last plan again\n" +
	"/fumehood review                let the workflow's AI reviewer propose a plan, and run it\n" +
	"/fumehood explain <id>          show why a command was allowed, denied or held for approval\n" +
	"/fumehood help                  show this help\n" +
	"````\n"

// HelpText lists the commands and who may use them.
func HelpText() string {
	return "**fumehood** runs commands on a pull request in a sandbox if policy allows them.\n\n" + usage +
		"\nWrite the command in a new comment with nothing else in it. Edited comments are not read.\n" +
		"By default, run, rerun, review and approve require write permission, and authors cannot approve on their own pull request.\n" +
		"The author can also use explain and help. An approval is valid for one commit, one plan and one policy.\n"
}

// RenderMarkdown describes the problem and, if Usage is set, the correct usage.
func (p *Problem) RenderMarkdown() string {
	var b strings.Builder
	b.WriteString("**Nothing was started:** ")
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d of the comment: ", p.Line)
	}
	b.WriteString(escapeProse(p.Message))
	if p.Text != "" {
		b.WriteString(": " + codeSpan(p.Text, shortText))
	}
	b.WriteString("\n")
	if len(p.Write) > 0 {
		var commands []string
		for _, w := range p.Write {
			commands = append(commands, codeSpan(w, shortText))
		}
		fmt.Fprintf(&b, "\n%s, write in a new comment: %s\n", p.Purpose, strings.Join(commands, " or "))
	}
	if p.Usage {
		b.WriteString("\n" + usage)
	}
	return b.String()
}

// DeniedReply explains why policy does not allow t's actor to use the command.
func DeniedReply(t points.Trigger, d proposal.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**Nothing was started.** Policy does not allow %s to use %s here.\n\n",
		codeSpan(t.Actor.Login, shortText), codeSpan(word+" "+t.Command, shortText))
	writeReasons(&b, d.Reasons)
	return b.String()
}

// StoppedReply reports that fumehood failed and nothing was started.
func StoppedReply(f *proposal.Failure) string {
	s := "**Nothing was started.** fumehood failed: " + codeSpan(f.Code, shortText) + " " +
		endSentence(escapeProse(f.Message))
	if f.Hint != "" {
		s += " To fix it: " + endSentence(escapeProse(f.Hint))
	}
	return s + "\n"
}

// A Run is a run that a comment requested, when it has ended.
type Run struct {
	Command    string // of the comment
	Head       string // the commit
	Conclusion string // action.Success and its like
	Results    string // the address of the comment with the results
	Log        string // the address of the workflow run
}

var login = pattern.New(`^[A-Za-z0-9_-]{1,100}$`)

// EndedReply is a comment that mentions a user because r has ended. It contains no other text that
// someone could have chosen. It is "" for what is not the login of a person.
func EndedReply(user string, r Run) string {
	if !login.MatchString(user) {
		return ""
	}
	return fmt.Sprintf("@%s, `/fumehood %s` has ended for commit `%.12s`: **%s**. [Results](%s) · [Log](%s)\n",
		user, r.Command, r.Head, r.Conclusion, r.Results, r.Log)
}

// ExplainDecisions describes the decisions, with reasons, about the proposals of the last
// run that have the id.
func ExplainDecisions(records []proposal.Record, id string) string {
	var b strings.Builder
	found := 0
	for _, r := range records {
		if r.Proposal.ID != id {
			continue
		}
		if found++; found > maxItems {
			break
		}
		explainRecord(&b, r)
	}
	if found == 0 {
		return "The last run has no command " + codeSpan(id, shortText) + ". " + describeCommandIDs(records) + "\n"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func describeCommandIDs(records []proposal.Record) string {
	if len(records) == 0 {
		return "It has no commands."
	}
	var ids []string
	for _, r := range records[:min(len(records), maxItems)] {
		ids = append(ids, codeSpan(r.Proposal.ID, shortText))
	}
	s := "It has " + strings.Join(ids, ", ")
	if more := len(records) - len(ids); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s + "."
}

var effects = map[proposal.Effect]string{
	proposal.Deny: "denied", proposal.Ask: "waiting for approval", proposal.Allow: "allowed",
}

func explainRecord(b *strings.Builder, r proposal.Record) {
	effect := effects[r.Decision.Effect]
	if r.Decision.Effect == proposal.Ask && r.Approval != nil {
		effect = "approved by " + codeSpan(r.Approval.By, shortText)
	}
	fmt.Fprintf(b, "**Command** %s is **%s**.\n\n", codeSpan(r.Proposal.ID, shortText), effect)
	if r.Analysis.Canonical != "" {
		fmt.Fprintf(b, "- Parsed as: %s\n", codeSpan(r.Analysis.Canonical, longText))
	}
	writeReasons(b, r.Decision.Reasons)
	if rules := r.Decision.Rules; r.Decision.Effect == proposal.Allow && len(rules) > 0 {
		fmt.Fprintf(b, "- Rules: %s\n", codeSpans(rules))
	}
	if g := r.Decision.Grant; g != nil {
		fmt.Fprintf(b, "- Limits: %s, %g CPUs, %s memory, %d processes, %s disk\n", g.Limits.Wall, g.Limits.CPUs,
			g.Limits.Memory, g.Limits.Pids, g.Limits.Disk)
	}
	if r.Result != nil {
		fmt.Fprintf(b, "- Result: %s\n", r.Result.Status)
	}
	b.WriteString("\n")
}

func codeSpans(list []string) string {
	var all []string
	for _, s := range list[:min(len(list), maxItems)] {
		all = append(all, codeSpan(s, shortText))
	}
	return strings.Join(all, ", ")
}

// writeReasons lists reasons; those that were only observed are marked.
func writeReasons(b *strings.Builder, reasons []proposal.Reason) {
	for i, r := range reasons {
		if i == maxItems {
			fmt.Fprintf(b, "- and %d more\n", len(reasons)-i)
			break
		}
		b.WriteString("- " + formatReason(r) + "\n")
	}
}

func formatReason(r proposal.Reason) string {
	s := codeSpan(r.Rule, shortText) + " "
	if r.Observed {
		s += "(observe mode, no effect) "
	}
	s += escapeProse(r.Message)
	if r.Text != "" && !strings.Contains(r.Message, r.Text) {
		s += ": " + codeSpan(r.Text, shortText)
	}
	if s = endSentence(s); r.Suggestion != "" {
		s += " Instead: " + endSentence(escapeProse(r.Suggestion))
	}
	return s
}
