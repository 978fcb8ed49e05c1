// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fumehood/fumehood/pkg/policy/manual"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func policyDocsCommand() *command {
	return &command{
		name:     "policy docs",
		synopsis: "write what the rules are, from their METADATA, as Markdown",
		usage: `[flags] [RULE]...

Without a policy the page shows the default policy. RULE is the id of a rule, such as network.client.

examples:
  fumehood policy docs > rules.md
  fumehood policy docs network.client
  fumehood policy docs --policy .fumehood/policy --output RULES.md
  fumehood policy docs --json | jq -r 'select(.set == "deny").id'
`,
		run: documentPolicy,
	}
}

func documentPolicy(c *invocation) int {
	var policies policyFlags
	var output string
	var asJSON bool
	f := c.Flags()
	policies.define(f)
	f.StringVar(&output, "output", "", "write the page to this `file`")
	f.BoolVar(&asJSON, "json", false, "print one rule a line as JSON")
	if code, ok := c.Parse(f); !ok {
		return code
	}
	if asJSON && output != "" {
		return c.Misuse("policy docs --json writes to standard output: remove --output")
	}
	layers, err := policies.layers(c.Ctx)
	if err != nil {
		return c.Stop(err)
	}
	rules, err := manual.Rules(layers...)
	if err == nil {
		rules, err = manual.Select(rules, f.Args()...)
	}
	if err != nil {
		return c.Stop(err)
	}
	if asJSON {
		for _, r := range rules {
			if err := c.PrintJSON(json.Marshal(r)); err != nil {
				return c.Stop(err)
			}
		}
		return exitOK
	}
	return c.writePage(rules, output)
}

func (c *invocation) writePage(rules []manual.Rule, output string) int {
	var page bytes.Buffer
	err := manual.Write(&page, rules)
	switch {
	case err != nil:
	case output == "":
		_, err = c.Stdout.Write(page.Bytes())
	default:
		if err = replaceFile(output, page.Bytes()); err != nil {
			err = unwritable(output, err)
		}
	}
	if err != nil {
		return c.Stop(err)
	}
	return exitOK
}

func unwritable(file string, err error) error {
	return &proposal.StopError{Code: "policy.not-writable", Message: fmt.Sprintf("cannot write %q", file), Hint: hintUnwritable, Err: err}
}
