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

func policyEvalDoor() *door {
	return &door{
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
		run: func(c *call) int { return c.think(false) },
	}
}

func policyExplainDoor() *door {
	return &door{
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
		run: func(c *call) int { return c.think(true) },
	}
}

// think decides all that the call asks about.
func (c *call) think(deep bool) int {
	var s subject
	var policies policyFlags
	var asJSON bool
	f := c.flags()
	s.define(f)
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print one JSON document a line: "+explain.ExplanationSchema)
	if code, ok := c.parse(f); !ok {
		return code
	}
	if code, ok := s.read(c, f); !ok {
		return code
	}
	engine, err := policies.engine(c.ctx)
	if err != nil {
		return c.stopped(err)
	}
	all, err := s.Explain(c.ctx, explain.NewAdviser(engine, gate.Analyze), deep)
	if err != nil {
		return c.stopped(err)
	}
	c.warn(engine.Warnings())
	return c.printExplanations(all, asJSON, deep)
}

func (c *call) printExplanations(all []explain.Explanation, asJSON, deep bool) int {
	code := exitOK
	o := render.Options{Deep: deep, Color: terminal.Colors(c.stdout)}
	for i, x := range all {
		if x.Decision.Effect != proposal.Allow {
			code = exitRefused
		}
		if !asJSON {
			if i > 0 {
				fmt.Fprintln(c.stdout)
			}
			fmt.Fprint(c.stdout, render.Explanation(x, o))
			continue
		}
		if err := c.printJSON(json.Marshal(x)); err != nil {
			return c.stopped(err)
		}
	}
	return code
}

// printJSON prints what was marshalled as one line, whoever wrote the texts in it.
func (c *call) printJSON(data []byte, err error) error {
	if err != nil {
		return err
	}
	return c.print(append(terminal.JSON(data), '\n'), nil)
}

// print prints data, which is fit for a terminal.
func (c *call) print(data []byte, err error) error {
	if err == nil {
		_, err = c.stdout.Write(data)
	}
	return err
}
