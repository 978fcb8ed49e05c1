// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Describer is a Judge that also returns input documents, as needed for a suggestion.
type Describer interface {
	Judge
	// Commands returns the input documents of p's commands for fumehood.command, as JSON.
	Commands(p proposal.Proposal, a proposal.Analysis) ([][]byte, error)
}

// Wanted selects what a policy is suggested for.
type Wanted struct {
	// Refused also includes commands that were refused only because no rule knows them.
	Refused bool
	// AtLeast leaves out commands that were seen less often.
	AtLeast int
}

// A Suggestion is a policy that allows what was seen, for a person to review. It is
// a directory for an organization's layer, used together with the default policy.
type Suggestion struct {
	Rules []SuggestedRule `json:"rules"`
	Hosts []SuggestedHost `json:"hosts"`
	// Tried are the hosts that commands tried while the network was only observed. Nothing is
	// granted for them: a person judges each.
	Tried []TriedHost `json:"tried,omitempty"`
	// Left lists what nothing was suggested for, and why, in order.
	Left  []Left `json:"left"`
	Runs  int    `json:"runs"`
	cases []seenCase
}

// A SuggestedRule allows the commands of one program, or of one of its subcommands.
type SuggestedRule struct {
	Rule     string   `json:"rule"`
	Program  string   `json:"program"`
	Sub      string   `json:"sub,omitempty"`
	Commands int      `json:"commands"` // that it was made from
	Runs     int      `json:"runs"`
	Examples []string `json:"examples"`
	// Wider says how the rule allows more than was seen.
	Wider []string `json:"wider,omitempty"`
	form  *commandForm
}

// A SuggestedHost is an entry of network that was granted.
type SuggestedHost struct {
	Host    string   `json:"host"`
	Phases  []string `json:"phases"`
	Runs    int      `json:"runs"`
	Reached bool     `json:"reached"` // the past has a connection to it
}

// A seenCase is a proposal that must stay allowed.
type seenCase struct {
	proposal proposal.Proposal
	want     proposal.Effect
	times    int
}

// Suggest makes a policy from what ran in past. judge decides without it: nothing
// is suggested that judge would not allow today. The error is a StopError, or means
// that ctx ended.
func Suggest(ctx context.Context, past Past, judge Describer, w Wanted) (Suggestion, error) {
	b := builder{judge: judge, wanted: w, forms: map[string]*commandForm{}, hosts: map[string]*SuggestedHost{},
		texts: map[string]int{}, tried: triedHosts{}, reported: map[Left]bool{}}
	for _, r := range past.Runs {
		b.s.Runs++
		for _, d := range r.Acts {
			if len(d.Reaches) > 0 && !b.tried.addHosts(d) {
				b.addLeft(r, d, "it tried a host whose name no rule can have")
			}
			if err := b.addProposal(ctx, r, d); err != nil {
				return b.s, err
			}
		}
	}
	b.finishSuggestion()
	return b.s, ctx.Err()
}

// A builder collects the suggestion.
type builder struct {
	judge    Describer
	wanted   Wanted
	s        Suggestion
	forms    map[string]*commandForm
	hosts    map[string]*SuggestedHost
	texts    map[string]int // index of cases
	reported map[Left]bool
	acts     []seenAct
	tried    triedHosts
}

// A seenAct is kept until it is known how often equal ones were seen.
type seenAct struct {
	run      Run
	act      Act
	want     proposal.Effect
	commands []command
}

func (b *builder) addLeft(r Run, d Act, why string) {
	l := Left{r.ID, d.Proposal.ID, why}
	if !b.reported[l] {
		b.reported[l] = true
		b.s.Left = append(b.s.Left, l)
	}
}

// addProposal handles one proposal.
func (b *builder) addProposal(ctx context.Context, r Run, d Act) error {
	decision, err := b.judge.Decide(ctx, d.Proposal, d.Analysis)
	if err != nil {
		return err
	}
	if why := b.unwantedReason(r, d, decision); why != "" {
		b.addLeft(r, d, why)
		return nil
	}
	documents, err := b.judge.Commands(d.Proposal, d.Analysis)
	if err != nil {
		return err
	}
	var commands []command
	for _, data := range documents {
		var document struct {
			Command command `json:"command"`
		}
		if err := json.Unmarshal(data, &document); err != nil {
			return err
		}
		if why := document.Command.noRuleReason(); why != "" {
			b.addLeft(r, d, why)
			return nil
		}
		commands = append(commands, document.Command)
	}
	want := decision.Effect
	if want == proposal.Deny { // no rule allows it yet
		want = proposal.Allow
	}
	b.acts = append(b.acts, seenAct{r, d, want, commands})
	return nil
}

// unwantedReason returns the reason why nothing is suggested for a proposal, or "".
func (b *builder) unwantedReason(r Run, d Act, decision proposal.Decision) string {
	switch {
	case !r.Verified:
		return "its file is not verified"
	case d.Proposal.Form() == "code":
		return "it is a snippet, for which no rule is made"
	case !plainText(d.Text()) || !plainText(fmt.Sprint(d.Proposal.Run, d.Proposal.Argv, d.Proposal.Network,
		d.Proposal.Cwd, d.Proposal.Env)):
		return "it contains characters that are not plain ASCII"
	case len(d.Text()) > maxExample:
		return fmt.Sprintf("it is longer than %d bytes", maxExample)
	case decision.Effect == proposal.Deny && b.wanted.Refused && unknownAlone(decision):
		return ""
	case decision.Effect == proposal.Deny:
		a := answerOf(decision, nil)
		return fmt.Sprintf("the policy refuses it, by %s: %s", a.Rule, a.Message)
	case !d.Ran:
		return "it did not run"
	}
	return ""
}

// unknownAlone reports whether d denies only because no rule allows the command. A
// layer can give that id to its own rule, which then denies.
func unknownAlone(d proposal.Decision) bool {
	return !slices.ContainsFunc(d.Reasons, func(r proposal.Reason) bool {
		return !r.Observed && r.Effect != proposal.Allow &&
			(r.Rule != "default.no-rule" || r.Layer != policy.LayerFloor)
	})
}

// finishSuggestion makes rules, hosts and cases from what was seen often enough.
func (b *builder) finishSuggestion() {
	times := map[string]int{}
	for _, d := range b.acts {
		times[d.act.Text()]++
	}
	for _, d := range b.acts {
		if times[d.act.Text()] < b.wanted.AtLeast {
			b.addLeft(d.run, d.act, fmt.Sprintf("it was seen fewer than %d times", b.wanted.AtLeast))
			continue
		}
		if slices.ContainsFunc(d.commands, func(c command) bool { return b.formOf(c).isFull() }) {
			b.addLeft(d.run, d.act, fmt.Sprintf("its program was seen with more than %d different words", maxValues))
			continue
		}
		b.addGrantedHosts(d)
		for _, c := range d.commands {
			b.formOf(c).addCommand(c, d.run.ID, d.act.Text())
		}
		b.aCase(d)
	}
	b.makeRules()
	b.s.Tried = b.tried.listHosts()
	b.s.Left = slices.Concat([]Left{}, b.s.Left)
}

// formOf returns the form for commands like c.
func (b *builder) formOf(c command) *commandForm {
	key := c.Place + "\x00" + c.Program + "\x00" + c.Sub
	if b.forms[key] == nil {
		b.forms[key] = newForm(c)
	}
	return b.forms[key]
}

func (b *builder) aCase(d seenAct) {
	p := d.act.Proposal
	key, _ := json.Marshal([]any{p.Run, p.Argv, p.Cwd, p.Network, p.Phase, p.Env})
	if i, known := b.texts[string(key)]; known {
		b.s.cases[i].times++
		return
	}
	b.texts[string(key)] = len(b.s.cases)
	b.s.cases = append(b.s.cases, seenCase{p, d.want, 1})
}

func (b *builder) addGrantedHosts(d seenAct) {
	for _, entry := range d.act.Proposal.Network {
		h := b.hosts[entry]
		if h == nil {
			h = &SuggestedHost{Host: entry}
			b.hosts[entry] = h
		}
		phase := d.act.Proposal.Phase
		if phase == "" {
			phase = proposal.PhaseRun
		}
		if !slices.Contains(h.Phases, phase) {
			h.Phases = append(h.Phases, phase)
		}
		h.Runs++
		name, _, _ := strings.Cut(entry, ":")
		h.Reached = h.Reached || slices.ContainsFunc(d.act.Flows, func(f Flow) bool {
			return f.Decision.Effect == proposal.Allow &&
				(f.Egress.Name == name || len(f.Egress.Registries) > 0 && name == "registry" ||
					strings.HasPrefix(name, "*") && strings.HasSuffix(f.Egress.Name, name[1:]))
		})
	}
}

// makeRules makes rules from the forms, in an order that does not depend on the past's.
func (b *builder) makeRules() {
	keys := make([]string, 0, len(b.forms))
	for key := range b.forms {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	taken := map[string]bool{}
	for _, key := range keys {
		f := b.forms[key]
		if f.times == 0 {
			continue
		}
		id := uniqueID("seen."+strings.Join(nonEmpty(makeSlug(f.program), makeSlug(f.sub)), "-"), taken)
		b.s.Rules = append(b.s.Rules, SuggestedRule{Rule: id, Program: f.program, Sub: f.sub, Commands: f.times,
			Runs: len(f.runs), Examples: f.examples, Wider: f.widerNotes(), form: f})
	}
	for _, entry := range sortedKeys(b.hosts) {
		slices.Sort(b.hosts[entry].Phases)
		b.s.Hosts = append(b.s.Hosts, *b.hosts[entry])
	}
}

func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// makeSlug returns a part of an id or of a file name: lower-case letters, digits and hyphens.
func makeSlug(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

func uniqueID(id string, taken map[string]bool) string {
	id = strings.TrimSuffix(id, ".")
	if id == "seen" {
		id = "seen.other"
	}
	name := id
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", id, n)
	}
	taken[name] = true
	return name
}
