// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/lint"
	"github.com/fumehood/fumehood/pkg/policy/render"
)

func policyCheckCommand() *command {
	return &command{
		name:     "policy check",
		synopsis: "compile policies, say all that is wrong with them, and count their rules",
		usage: `[flags]

Each layer is checked in the role that its flag gives it. What a run would refuse to load
is "refused"; what it would load, and what hardly does what it seems to, an "error". Both
make the exit code 1. A "warning" does so with --strict.

examples:
  fumehood policy check --policy ./policy
  fumehood policy check --organisation ./org --policy ./policy --strict
  fumehood policy check --policy ./policy --json
`,
		run: checkPolicy,
	}
}

func checkPolicy(c *invocation) int {
	var policies policyFlags
	var asJSON, strict bool
	f := c.Flags()
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print one JSON document: rules and problems")
	f.BoolVar(&strict, "strict", false, "let warnings fail, too")
	if code, ok := c.Parse(f); !ok {
		return code
	}
	if f.NArg() > 0 {
		return c.Misuse("policy check takes no argument: name folders with --policy")
	}
	layers, err := policies.layers(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	review, err := policy.Check(c.Ctx, layers)
	if err != nil {
		return c.Stop(err)
	}
	if err := c.printReview(review, asJSON); err != nil {
		return c.Stop(err)
	}
	return reviewCode(review, strict)
}

func reviewCode(r policy.Review, strict bool) int {
	if r.Count(lint.Refused)+r.Count(lint.Wrong) > 0 || strict && len(r.Problems) > 0 {
		return exitRefused
	}
	return exitOK
}

func (c *invocation) printReview(r policy.Review, asJSON bool) error {
	if !asJSON {
		return render.Review(c.Stdout, r)
	}
	encoder := json.NewEncoder(c.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
