// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/replay"
)

func policyReplayDoor() *door {
	return &door{
		name:     "policy replay",
		synopsis: "decide past runs again, and say what would change",
		usage: `LOG|REPORT|FOLDER… [flags]

Reads audit logs, reports, and folders of them. Each proposal is decided again under the
policies that the flags name, and so is each program and connection of the commands that
would still run; limits that would be others are a change too. A log that does not verify is refused.

exit codes: 0 nothing changes that --fail-on names, 1 something does, 3 the past or the
policy cannot be read

examples:
  fumehood policy replay ~/.local/state/fumehood --policy ./policy
  fumehood policy replay audit.jsonl --organisation ./org --fail-on looser
  fumehood policy replay runs/ --policy ./policy --json | jq '.changes[] | select(.to.effect == "deny")'
`,
		run: replayPast,
	}
}

// failures are what --fail-on may name.
var failures = map[string]func(replay.Change) bool{
	"any":         func(replay.Change) bool { return true },
	"stricter":    replay.Change.Stricter,
	"allow->deny": func(c replay.Change) bool { return c.From.Effect == "allow" && c.To.Effect != "allow" },
	"looser":      func(c replay.Change) bool { return !c.Stricter() },
	"deny->allow": func(c replay.Change) bool { return c.From.Effect == "deny" && c.To.Effect == "allow" },
	"none":        func(replay.Change) bool { return false },
}

// A reading is what the flags of replay and suggest say of the past.
type reading struct {
	key        string
	unverified bool
}

func (of *reading) define(f *flag.FlagSet) {
	f.StringVar(&of.key, "key", "", "verifier `key` that every log must be signed with (default: the log's own)")
	f.BoolVar(&of.unverified, "unverified", false, "also read what comes before the fault of a log that does not verify")
}

func (of *reading) read(paths []string) (replay.Past, error) {
	return replay.Read(paths, replay.Options{Parse: gate.Analyze, Key: of.key, Unverified: of.unverified})
}

func replayPast(c *call) int {
	var policies chosen
	var of reading
	var asJSON bool
	failOn := "any"
	f := c.flags()
	policies.define(f)
	of.define(f)
	f.StringVar(&failOn, "fail-on", failOn, "exit with 1 at a change that is `any`, stricter (or allow->deny), looser (or deny->allow), or none")
	f.BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	paths, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(paths) == 0 {
		return c.misuse("policy replay needs a log, a report or a folder of them")
	}
	fails := failures[failOn]
	if fails == nil {
		return c.misuse(fmt.Sprintf("--fail-on takes any, stricter, looser or none, not %q", failOn))
	}
	past, outcome, err := c.again(paths, of, &policies)
	if err != nil {
		return c.stopped(err)
	}
	if asJSON {
		err = c.printOutcomeJSON(past, outcome)
	} else {
		err = c.printOutcome(past, outcome)
	}
	switch {
	case err != nil:
		return c.stopped(err)
	case slices.ContainsFunc(outcome.Changes, fails):
		return exitRefused
	}
	return exitOK
}

// again reads the past and decides it once more.
func (c *call) again(paths []string, of reading, policies *chosen) (replay.Past, replay.Outcome, error) {
	// Every decision leaves much behind and the heap is small: collected as it grows by
	// half, a third of the time would go into that.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	engine, err := policies.engine(c.ctx, false)
	if err != nil {
		return replay.Past{}, replay.Outcome{}, err
	}
	past, err := of.read(paths)
	if err != nil {
		return past, replay.Outcome{}, err
	}
	outcome, err := replay.Again(c.ctx, past, engine, c.counter(past))
	c.warn(engine.Warnings())
	return past, outcome, err
}

// counter tells a person at a terminal how far it is.
func (c *call) counter(past replay.Past) func(int) {
	p := newProgress(c.stderr)
	if !p.on {
		return nil
	}
	var mu sync.Mutex
	var last time.Time
	of := past.Proposals()
	return func(done int) {
		mu.Lock()
		defer mu.Unlock()
		if done == of {
			fmt.Fprint(p.w, "\x1b[K")
		} else if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			fmt.Fprintf(p.w, "\x1b[2mfumehood: %d of %d proposals …\x1b[0m\x1b[K\r", done, of)
		}
	}
}

func (c *call) printOutcomeJSON(past replay.Past, o replay.Outcome) error {
	data, err := o.JSON(past)
	if err != nil {
		return err
	}
	_, err = c.stdout.Write(data)
	return err
}

func (c *call) printOutcome(past replay.Past, o replay.Outcome) error {
	c.tellPast(past)
	w := &strings.Builder{}
	changed, granted := map[string]int{}, ""
	for _, change := range o.Changes {
		changed[change.Kind]++
	}
	if n := changed[replay.KindGrant]; n > 0 {
		granted = "; " + counted(n, "grant") + " would"
	}
	fmt.Fprintf(w, "of %s in %s, %s would change%s%s\n", counted(o.Proposals, "proposal"), counted(o.Runs, "run"), none(changed[replay.KindProposal]), granted, ending(len(o.Changes)))
	if others := changed[replay.KindExec] + changed[replay.KindEgress]; o.Execs+o.Egress > 0 {
		fmt.Fprintf(w, "of %s and %s, %s would change%s\n", counted(o.Execs, "program"), counted(o.Egress, "step")+" of connections", none(others), ending(others))
	}
	for _, g := range grouped(o.Changes) {
		g.write(w)
	}
	if o.Moot > 0 {
		fmt.Fprintf(w, "\nnot decided: %s of commands that would not run\n", counted(o.Moot, "program or connection"))
	}
	if o.Omitted > 0 {
		fmt.Fprintf(w, "\nnot decided: %s that the past does not say in full\n", counted(o.Omitted, "program or connection"))
	}
	if p := newProgress(c.stderr); p.on && o.Took > 0 {
		p.always(fmt.Sprintf("%d decisions in %v: %.0f a second", o.Decisions, o.Took.Round(time.Millisecond), float64(o.Decisions)/o.Took.Seconds()))
	}
	_, err := io.WriteString(c.stdout, w.String())
	return err
}

// tellPast says what of the past was not taken, and what nothing vouches for.
func (c *call) tellPast(past replay.Past) {
	for _, source := range past.Unverified() {
		fmt.Fprintf(c.stderr, "fumehood: %s: nothing vouches for what it says\n", printable(source))
	}
	for _, l := range past.Left {
		at := l.Source
		if l.ID != "" {
			at += ", proposal " + l.ID
		}
		fmt.Fprintf(c.stderr, "fumehood: %s: left out: %s\n", shown(at, 300), shown(l.Why, 300))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if rest, ok := strings.CutPrefix(what, "program or "); ok {
		return fmt.Sprintf("%d programs or %ss", n, rest)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func none(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

func ending(changes int) string {
	if changes == 0 {
		return ""
	}
	return ":"
}

// A group is changes of one kind, from one effect to another, by one rule.
type group struct {
	kind, from, to, rule, message string
	stricter                      bool
	changes                       []replay.Change
}

// grouped puts what becomes stricter first, and the largest groups first.
func grouped(changes []replay.Change) []group {
	var groups []group
	for _, c := range changes {
		rule := c.To.Rule
		if !c.Stricter() {
			rule = c.From.Rule
		}
		if c.Kind == replay.KindGrant {
			rule = c.From.Message + " → " + c.To.Message
		}
		i := slices.IndexFunc(groups, func(g group) bool {
			return g.kind == c.Kind && g.from == c.From.Effect && g.to == c.To.Effect && g.rule == rule
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{c.Kind, c.From.Effect, c.To.Effect, rule, c.To.Message, c.Stricter(), nil})
		}
		groups[i].changes = append(groups[i].changes, c)
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		switch {
		case a.stricter != b.stricter && a.stricter:
			return -1
		case a.stricter != b.stricter:
			return 1
		}
		return cmp.Compare(len(b.changes), len(a.changes))
	})
	return groups
}

// mostShown bounds the different commands that are shown of one group; --json has all.
const mostShown = 20

func (g group) write(w io.Writer) {
	by := "by"
	if !g.stricter {
		by = "no longer by"
	}
	if g.kind == replay.KindGrant {
		fmt.Fprintf(w, "\n%s: %s", counted(len(g.changes), g.kind), shown(g.rule, 400))
	} else {
		fmt.Fprintf(w, "\n%s %s → %s, %s %s", counted(len(g.changes), g.kind), g.from, g.to, by, shown(g.rule, 100))
	}
	if g.kind != replay.KindGrant && g.stricter && g.message != "" {
		fmt.Fprintf(w, " (%s)", shown(g.message, 200))
	}
	fmt.Fprintln(w)
	type told struct {
		text, at string
		times    int
	}
	var list []told
	at := map[string]int{}
	for _, c := range g.changes {
		if i, known := at[c.Text]; known {
			list[i].times += c.Times
			continue
		}
		at[c.Text] = len(list)
		list = append(list, told{c.Text, c.Run + " " + c.ID, c.Times})
	}
	for i, t := range list {
		if i == mostShown {
			fmt.Fprintf(w, "  and %d more: --json shows them\n", len(list)-i)
			break
		}
		times := ""
		if t.times > 1 {
			times = fmt.Sprintf(", %d times", t.times)
		}
		fmt.Fprintf(w, "  %s\n      %s%s\n", shown(strings.ReplaceAll(strings.TrimSpace(t.text), "\n", "⏎ "), 200), shown(t.at, 120), times)
	}
}
