// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// Files returns the suggestion as a directory: Rego by tool, hosts, and cases.
// Texts of the past occur only as JSON strings of printable ASCII, so that none can
// end a string, a comment or a line.
func (s Suggestion) Files() map[string][]byte {
	files := map[string]*strings.Builder{}
	for _, r := range s.Rules {
		name := "command/" + nameOf(makeSlug(r.Program)) + ".rego"
		if files[name] == nil {
			files[name] = &strings.Builder{}
			files[name].WriteString(judgeThis + "package fumehood.command\n")
		}
		r.writeRule(files[name])
	}
	if len(s.Rules) > 0 {
		files["command/only-seen.rego"] = &strings.Builder{}
		files["command/only-seen.rego"].WriteString(onlySeen)
	}
	if len(s.Hosts) > 0 {
		files["proposal/hosts.rego"] = &strings.Builder{}
		s.writeHosts(files["proposal/hosts.rego"])
	}
	if len(s.Tried) > 0 {
		files["proposal/tried.rego"] = &strings.Builder{}
		s.writeTried(files["proposal/tried.rego"])
	}
	if len(s.cases) > 0 {
		files["cases.yaml"] = &strings.Builder{}
		s.writeCases(files["cases.yaml"])
	}
	all := map[string][]byte{}
	for name, b := range files {
		all[name] = []byte(b.String())
	}
	return all
}

// nameOf avoids a tool's file having the same name as only-seen.rego.
func nameOf(tool string) string {
	if tool == "" || tool == "only-seen" {
		return "other"
	}
	return tool
}

const judgeThis = `# Written by fumehood policy suggest from past runs. It allows what was seen, which may
# be more than you want: read each rule, and remove what should not be allowed.
`

const onlySeen = judgeThis + `package fumehood.command

# METADATA
# title: Only commands that were seen are allowed
# custom:
#   rule: seen.only
#   text_only: true
#   match: ["no-such-program --was-ever-seen"]
deny contains {"rule": "seen.only", "message": "no rule that was made from past runs allows this command", "suggestion": "propose what the policy's examples show, or have a person add a rule"} if count(allow) == 0
`

// quoteText returns text as a string that is valid in Rego, JSON and YAML.
func quoteText(text string) string {
	var data strings.Builder
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic("replay: internal error: a string does not encode: " + err.Error())
	}
	var b strings.Builder
	for _, r := range strings.TrimSuffix(data.String(), "\n") {
		if r < ' ' || r > '~' {
			b.WriteByte('?') // Suggest refuses such texts
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func quoteList(texts []string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = quoteText(t)
	}
	return strings.Join(all, ", ")
}

func (r SuggestedRule) writeRule(b *strings.Builder) {
	f, name := r.form, strings.NewReplacer(".", "_", "-", "_").Replace(r.Rule)
	fmt.Fprintf(b, "\n# Seen %s, in %d of the runs: %s\n", timesText(r.Commands), r.Runs,
		strings.Join(shownRuns(f.runs), " "))
	for _, w := range r.Wider {
		fmt.Fprintf(b, "# Wider than what was seen: %s\n", quoteComment(w))
	}
	title := "Commands of " + strings.Join(nonEmpty(r.Program, r.Sub), " ") + " that were seen"
	if r.Program == "" {
		title = "Assignments and redirections that were seen"
	}
	fmt.Fprintf(b, "#\n# METADATA\n# title: %s\n# custom:\n#   rule: %s\n#   match: [%s]\n", quoteText(title), r.Rule,
		quoteList(r.Examples))
	fmt.Fprintf(b, "allow contains {\"rule\": %s} if {\n", quoteText(r.Rule))
	for _, condition := range f.ruleConditions(name) {
		fmt.Fprintf(b, "\t%s\n", condition)
	}
	b.WriteString("}\n")
	f.writeWords(b, name+"_option", f.options, "name")
	f.writeWords(b, name+"_operand", f.operands, "")
	f.writeWords(b, name+"_redirect", f.redirects, "kind")
}

func timesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// quoteComment returns text without anything that could end a line.
func quoteComment(text string) string { return strings.Trim(quoteText(text), `"`) }

var runName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// shownRuns returns the first runs whose ids are plain.
func shownRuns(runs map[string]bool) []string {
	ids := slices.DeleteFunc(sortedKeys(runs), func(id string) bool { return !runName.MatchString(id) })
	if len(ids) > 5 {
		ids = append(ids[:5:5], "…")
	}
	return ids
}

// scripted are the tools whose operands and options may be a script.
var scripted = []string{"sed", "gsed", "awk", "gawk", "mawk", "nawk", "original-awk"}

// ruleConditions returns the conditions of the rule; those that OPA indexes come first.
func (f *commandForm) ruleConditions(name string) []string {
	list := []string{fmt.Sprintf("input.command.program == %s", quoteText(f.program)),
		fmt.Sprintf("input.command.place == %s", quoteText(f.place)),
		fmt.Sprintf("input.command.sub == %s", quoteText(f.sub))}
	if !f.function {
		list = append(list, "not input.command.function")
	}
	list = append(list, membershipOf("input.command.stdin_from", sortedKeys(f.stdin)))
	if f.plain && slices.Contains(scripted, f.program) {
		list = append(list, "input.command.script.plain")
	}
	list = append(list, everyCondition("option", "options", len(f.options) > 0, name+"_option(option)"),
		everyCondition("operand", "operands", len(f.operands) > 0, name+"_operand(operand)"))
	list = append(list, everyCondition("wrapper", "via", len(f.via) > 0, membershipOf("wrapper", sortedKeys(f.via))))
	list = append(list, f.assignsCondition(),
		everyCondition("redirect", "redirects", len(f.redirects) > 0, name+"_redirect(redirect)"))
	return append(list, "count(input.command.unknown) == 0", "count(input.command.homes) == 0",
		"count(input.command.credentials) == 0", "not input.command.loose")
}

func membershipOf(field string, texts []string) string {
	if len(texts) == 1 {
		return fmt.Sprintf("%s == %s", field, quoteText(texts[0]))
	}
	return fmt.Sprintf("%s in {%s}", field, quoteList(texts))
}

// everyCondition returns a condition on every member of a list, which must be empty if none
// was seen.
func everyCondition(member, of string, any bool, condition string) string {
	if !any {
		return fmt.Sprintf("count(input.command.%s) == 0", of)
	}
	return fmt.Sprintf("count([1 | some %s in input.command.%s; not %s]) == 0", member, of, condition)
}

func (f *commandForm) assignsCondition() string {
	var pairs []string
	for _, name := range sortedKeys(f.assigns) {
		for _, w := range f.assigns.wordsOf(name) {
			pairs = append(pairs, fmt.Sprintf("[%s, %s, %t]", quoteText(name), quoteText(w.Value), w.Static))
		}
	}
	return everyCondition("a", "assigns", len(pairs) > 0,
		fmt.Sprintf("[a.name, a.value, a.static] in {%s}", strings.Join(pairs, ", ")))
}

// writeWords writes the function that matches the words that were seen. field is
// the field of a word that has v's key.
func (f *commandForm) writeWords(b *strings.Builder, function string, v values, field string) {
	for _, name := range sortedKeys(v) {
		places, exact := splitWords(v.wordsOf(name))
		if len(places) > 0 {
			fmt.Fprintf(b, "\n%s(word) if {\n", function)
			if field != "" {
				fmt.Fprintf(b, "\tword.%s == %s\n", field, quoteText(name))
			}
			fmt.Fprintf(b, "\tword.static\n\t%s\n\tregex.match(`%s`, word.value)\n}\n",
				membershipOf("word.place", places), pathPattern)
		}
		if len(exact) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s(word) if {\n", function)
		if field != "" {
			fmt.Fprintf(b, "\tword.%s == %s\n", field, quoteText(name))
		}
		var pairs []string
		for _, w := range exact {
			pairs = append(pairs, fmt.Sprintf("[%s, %s, %t]", quoteText(w.Value), quoteText(w.Place), w.Static))
		}
		fmt.Fprintf(b, "\t[word.value, word.place, word.static] in {%s}\n}\n",
			strings.Join(slices.Compact(pairs), ", "))
	}
}

func (s Suggestion) writeHosts(b *strings.Builder) {
	b.WriteString(judgeThis + "package fumehood.proposal\n")
	for i, h := range s.Hosts {
		reached := "reached"
		if !h.Reached {
			reached = "granted, but never reached: remove it if no test needs it"
		}
		fmt.Fprintf(b, "\n# In %d proposals, %s.\n#\n# METADATA\n# title: %s\n# custom: {rule: seen.host-%d}\n", h.Runs,
			reached, quoteText("A host that was used: "+h.Host), i+1)
		fmt.Fprintf(b, "network contains {\"rule\": \"seen.host-%d\", \"host\": %s} if %s\n", i+1, quoteText(h.Host),
			membershipOf("input.proposal.phase", h.Phases))
	}
}

func (s Suggestion) writeCases(b *strings.Builder) {
	b.WriteString("# Written by fumehood policy suggest: what ran must stay allowed.\nschema: fumehood.cases/v1\ncases:\n")
	for i, c := range s.cases[:min(len(s.cases), maxCases)] {
		row := []string{fmt.Sprintf(`"name": "seen %d, %s"`, i+1, timesText(c.times))}
		if c.proposal.Form() == "argv" {
			row = append(row, `"argv": [`+quoteList(c.proposal.Argv)+"]")
		} else {
			row = append(row, `"run": `+quoteText(c.proposal.Run))
		}
		if c.proposal.Cwd != "" {
			row = append(row, `"cwd": `+quoteText(c.proposal.Cwd))
		}
		if len(c.proposal.Network) > 0 {
			row = append(row, `"network": [`+quoteList(c.proposal.Network)+"]")
		}
		if c.proposal.Phase != "" {
			row = append(row, `"phase": `+quoteText(c.proposal.Phase))
		}
		if len(c.proposal.Env) > 0 {
			var env []string
			for _, name := range sortedKeys(c.proposal.Env) {
				env = append(env, quoteText(name)+": "+quoteText(c.proposal.Env[name]))
			}
			row = append(row, `"env": {`+strings.Join(env, ", ")+"}")
		}
		fmt.Fprintf(b, "  - {%s, \"want\": %s}\n", strings.Join(row, ", "), quoteText(c.want.String()))
	}
}

// maxCases is below the limit of a file of cases.
const maxCases = 1000
