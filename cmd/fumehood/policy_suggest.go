// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/replay"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policySuggestCommand() *command {
	return &command{
		name:     "policy suggest",
		synopsis: "write the rules that allow what past runs ran, for a person to judge",
		usage: `LOG|FOLDER… [flags]

Reads audit logs and writes a policy by tool, with hosts and cases: used with
--organisation, it refuses everything else, and the default policy still refuses what it
refuses. What nothing was suggested for is said, with the reason.

examples:
  fumehood policy suggest ~/.local/state/fumehood --out seen
  fumehood policy test --organisation seen
  fumehood run --plan plan.yaml --policy seen --observe     on trial: nothing is refused by it
  fumehood run --plan plan.yaml --organisation seen         held
  fumehood policy suggest audit.jsonl --json | jq '.left'
`,
		run: suggestPolicy,
	}
}

func suggestPolicy(c *invocation) int {
	var policies policyFlags
	var of reading
	var wanted replay.Wanted
	var out string
	var asJSON bool
	f := c.Flags()
	policies.define(f)
	of.define(f)
	f.BoolVar(&wanted.Refused, "refused", false, "also suggest rules for commands that were refused only because no rule knows them")
	f.IntVar(&wanted.AtLeast, "at-least", 1, "leave out commands that were seen less than `N` times")
	f.StringVar(&out, "out", "", "write the policy to this new `folder` (default: print it)")
	f.BoolVar(&asJSON, "json", false, "print the suggestion and its files as JSON")
	paths, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if len(paths) == 0 {
		return c.Misuse("policy suggest needs a log or a folder of them")
	}
	past, s, err := c.suggestion(paths, of, wanted, &policies)
	if err == nil && out != "" {
		err = s.Write(out)
	}
	if err != nil {
		return c.Stop(err)
	}
	c.Note(replay.Past{Left: past.Left}.Notes()...)
	return c.printSuggestion(s, out, asJSON)
}

// suggestion makes one and checks that it keeps its promise.
func (c *invocation) suggestion(paths []string, of reading, wanted replay.Wanted, policies *policyFlags) (replay.Past, replay.Suggestion, error) {
	layers, err := policies.layers(c.Ctx)
	if err != nil {
		return replay.Past{}, replay.Suggestion{}, err
	}
	engine, err := newEngine(c.Ctx, policy.Options{Layers: layers})
	if err != nil {
		return replay.Past{}, replay.Suggestion{}, err
	}
	past, err := of.read(paths)
	if err != nil {
		return past, replay.Suggestion{}, err
	}
	s, err := replay.Suggest(c.Ctx, past, replay.Engine{Engine: engine}, wanted)
	if err != nil {
		return past, s, err
	}
	if err := s.CheckAny(); err != nil {
		c.Note(s.Notes()...)
		return past, s, err
	}
	with, err := newEngine(c.Ctx, policy.Options{Layers: append(layers, s.Layer())})
	if err != nil {
		return past, s, err
	}
	return past, s, s.Hold(c.Ctx, with, gate.Analyze)
}

func (c *invocation) printSuggestion(s replay.Suggestion, out string, asJSON bool) int {
	if asJSON {
		if err := c.Print(s.JSON()); err != nil {
			return c.Stop(err)
		}
		return exitOK
	}
	c.Note(s.Notes()...)
	if out == "" {
		s.Print(c.Stdout)
		return exitOK
	}
	fmt.Fprintf(c.Stdout, "%s, in %s; %s\n", s.Made(), terminal.Line(out), s.LeftOut())
	fmt.Fprintf(c.Stdout, "read each rule, then: fumehood policy test --organisation %s\n", terminal.Line(out))
	return exitOK
}
