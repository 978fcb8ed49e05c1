// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

func checkCommand() *command {
	return &command{
		name:     "check",
		synopsis: "parse and decide a plan's proposals, and run nothing",
		usage: `--plan PLAN [flags]

examples:
  fumehood check --plan plan.yaml
  fumehood check --plan - --json < plan.json | jq -r '.decision.effect'
`,
		run: checkPlan,
	}
}

func checkPlan(c *invocation) int {
	var path string
	var policies policyFlags
	var asJSON bool
	f := c.Flags()
	f.StringVar(&path, "plan", "", "plan of proposals, JSON or YAML; - for stdin")
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print one Record a line")
	if code, ok := c.Parse(f); !ok {
		return code
	}
	if path == "" || f.NArg() > 0 {
		return c.Misuse("check needs --plan and no other argument")
	}
	p, code, ok := c.readPlan(path, nil)
	if !ok {
		return code
	}
	o := gate.Options{DecideOnly: true}
	var err error
	if o.Policies, err = policies.Read(c.Ctx); err != nil {
		return c.Stop(err)
	}
	g, err := newGate(c.Ctx, o)
	if err != nil {
		return c.Stop(err)
	}
	defer g.Close()
	records, err := g.Check(c.Ctx, p)
	if err != nil {
		return c.Stop(err)
	}
	c.Warn(g.Warnings()...)
	return c.printRecords(records, asJSON)
}

func (c *invocation) printRecords(records []proposal.Record, asJSON bool) int {
	code := exitOK
	for _, r := range records {
		if r.Decision.Effect != proposal.Allow {
			code = exitRefused
		}
		if !asJSON {
			report.Decision(c.Stdout, r)
		} else if err := c.PrintJSON(json.Marshal(r)); err != nil {
			return c.Stop(err)
		}
	}
	return code
}
