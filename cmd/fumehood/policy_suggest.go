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

func policySuggestDoor() *door {
	return &door{
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

func suggestPolicy(c *call) int {
	var policies policyFlags
	var of reading
	var wanted replay.Wanted
	var out string
	var asJSON bool
	f := c.flags()
	policies.define(f)
	of.define(f)
	f.BoolVar(&wanted.Refused, "refused", false, "also suggest rules for commands that were refused only because no rule knows them")
	f.IntVar(&wanted.AtLeast, "at-least", 1, "leave out commands that were seen less than `N` times")
	f.StringVar(&out, "out", "", "write the policy to this new `folder` (default: print it)")
	f.BoolVar(&asJSON, "json", false, "print the suggestion and its files as JSON")
	paths, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(paths) == 0 {
		return c.misuse("policy suggest needs a log or a folder of them")
	}
	past, s, err := c.suggestion(paths, of, wanted, &policies)
	if err == nil && out != "" {
		err = s.Write(out)
	}
	if err != nil {
		return c.stopped(err)
	}
	c.note(replay.Past{Left: past.Left}.Notes())
	return c.printSuggestion(s, out, asJSON)
}

// suggestion makes one and checks that it keeps its promise.
func (c *call) suggestion(paths []string, of reading, wanted replay.Wanted, policies *policyFlags) (replay.Past, replay.Suggestion, error) {
	layers, err := policies.layers(c.ctx)
	if err != nil {
		return replay.Past{}, replay.Suggestion{}, err
	}
	engine, err := newEngine(c.ctx, policy.Options{Layers: layers})
	if err != nil {
		return replay.Past{}, replay.Suggestion{}, err
	}
	past, err := of.read(paths)
	if err != nil {
		return past, replay.Suggestion{}, err
	}
	s, err := replay.Suggest(c.ctx, past, replay.Engine{Engine: engine}, wanted)
	if err != nil {
		return past, s, err
	}
	if err := s.CheckAny(); err != nil {
		c.note(s.Notes())
		return past, s, err
	}
	with, err := newEngine(c.ctx, policy.Options{Layers: append(layers, s.Layer())})
	if err != nil {
		return past, s, err
	}
	return past, s, s.Hold(c.ctx, with, gate.Analyze)
}

func (c *call) printSuggestion(s replay.Suggestion, out string, asJSON bool) int {
	if asJSON {
		if err := c.print(s.JSON()); err != nil {
			return c.stopped(err)
		}
		return exitOK
	}
	c.note(s.Notes())
	if out == "" {
		s.Print(c.stdout)
		return exitOK
	}
	fmt.Fprintf(c.stdout, "%s in %s; %s\n", s.Made(), terminal.Line(out), s.LeftOut())
	fmt.Fprintf(c.stdout, "read each rule, then: fumehood policy test --organisation %s\n", terminal.Line(out))
	return exitOK
}
