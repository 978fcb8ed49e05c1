// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

func checkDoor() *door {
	return &door{
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

func checkPlan(c *call) int {
	var path string
	var policies policyFlags
	var asJSON bool
	f := c.flags()
	f.StringVar(&path, "plan", "", "plan of proposals, JSON or YAML; - for stdin")
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print one Record a line")
	if code, ok := c.parse(f); !ok {
		return code
	}
	if path == "" || f.NArg() > 0 {
		return c.misuse("check needs --plan and no other argument")
	}
	p, code, ok := c.readPlan(path, nil)
	if !ok {
		return code
	}
	o := gate.Options{DecideOnly: true}
	var err error
	if o.Policies, err = policies.Read(c.ctx); err != nil {
		return c.stopped(err)
	}
	g, err := newGate(c.ctx, o)
	if err != nil {
		return c.stopped(err)
	}
	defer g.Close()
	records, err := g.Check(c.ctx, p)
	if err != nil {
		return c.stopped(err)
	}
	c.warn(g.Warnings())
	return c.printRecords(records, asJSON)
}

func (c *call) printRecords(records []proposal.Record, asJSON bool) int {
	code := exitOK
	for _, r := range records {
		if r.Decision.Effect != proposal.Allow {
			code = exitRefused
		}
		if !asJSON {
			report.Decision(c.stdout, r)
		} else if err := c.printJSON(json.Marshal(r)); err != nil {
			return c.stopped(err)
		}
	}
	return code
}
