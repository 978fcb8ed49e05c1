// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/fumehood/fumehood/pkg/policy"
)

func policyCheckDoor() *door {
	return &door{
		name:     "policy check",
		synopsis: "compile policies, say what is wrong with them, and count their rules",
		usage: `[flags]

examples:
  fumehood policy check --policy ./policy
  fumehood policy check --organisation ./org --policy ./policy --json
`,
		run: checkPolicy,
	}
}

func checkPolicy(c *call) int {
	var policies chosen
	var asJSON bool
	f := c.flags()
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print the counts as JSON, one a line")
	if code, ok := c.parse(f); !ok {
		return code
	}
	if f.NArg() > 0 {
		return c.misuse("policy check takes no argument: name folders with --policy")
	}
	engine, err := policies.engine(c.ctx, false)
	if err != nil {
		return c.stopped(err)
	}
	c.warn(engine)
	return c.printCounts(engine.Rules(), asJSON)
}

func (c *call) printCounts(counts []policy.RuleCount, asJSON bool) int {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	encoder := json.NewEncoder(c.stdout)
	for _, n := range counts {
		switch {
		case n.Rules == 0:
		case asJSON:
			if err := encoder.Encode(n); err != nil {
				return c.stopped(err)
			}
		default:
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", printable(n.Layer), n.Point, n.Set, n.Rules)
		}
	}
	if err := w.Flush(); err != nil {
		return c.stopped(err)
	}
	return exitOK
}
