// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy/explain"
	"github.com/fumehood/fumehood/pkg/policy/render"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policyEvalCommand() *command {
	return &command{
		name:     "policy eval",
		synopsis: "decide one command: effect, reasons, grant, and which rules of which layer spoke",
		usage: `[flags] ['COMMAND']

` + subjectUsage + `
examples:
  fumehood policy eval 'go test ./...'
  fumehood policy eval --policy ./policy --phase setup --network registry:npm 'npm ci'
  fumehood policy eval --json --argv -- git log -5 | jq .decision.effect
  echo '{"pr": {"fork": true}, "actor": {"permission": "read"}}' | fumehood policy eval --pr -

exit codes: 0 allow, 1 deny or ask, 2 usage, 3 fumehood could not decide
`,
		run: func(c *invocation) int { return c.think(false) },
	}
}

func policyExplainCommand() *command {
	return &command{
		name:     "policy explain",
		synopsis: "say why a command is refused, what nearly matched, and what would be allowed",
		usage: `[flags] ['COMMAND']

` + subjectUsage + `
Every command that is shown as allowed was decided, as one proposed by itself.

examples:
  fumehood policy explain 'go test -exec ./x ./...'
  fumehood policy explain --policy ./policy --plan plan.yaml --id unit
  fumehood policy explain --json 'sudo make' | jq '.decision.reasons[0].retry'

exit codes: 0 allow, 1 deny or ask, 2 usage, 3 fumehood could not decide
`,
		run: func(c *invocation) int { return c.think(true) },
	}
}

// think decides all that the call asks about.
func (c *invocation) think(deep bool) int {
	var s subject
	var policies policyFlags
	var asJSON bool
	f := c.Flags()
	s.define(f)
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print one JSON document a line: "+explain.ExplanationSchema)
	if code, ok := c.Parse(f); !ok {
		return code
	}
	if code, ok := s.read(c, f); !ok {
		return code
	}
	engine, err := policies.engine(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	all, err := s.Explain(c.Ctx, explain.NewAdviser(engine, gate.Analyze), deep)
	if err != nil {
		return c.Stop(err)
	}
	c.Warn(engine.Warnings()...)
	return c.printExplanations(all, asJSON, deep)
}

func (c *invocation) printExplanations(all []explain.Explanation, asJSON, deep bool) int {
	code := exitOK
	o := render.Options{Deep: deep, Color: terminal.Colors(c.Stdout)}
	for i, x := range all {
		if x.Decision.Effect != proposal.Allow {
			code = exitRefused
		}
		if !asJSON {
			if i > 0 {
				fmt.Fprintln(c.Stdout)
			}
			fmt.Fprint(c.Stdout, render.Explanation(x, o))
			continue
		}
		if err := c.PrintJSON(json.Marshal(x)); err != nil {
			return c.Stop(err)
		}
	}
	return code
}
