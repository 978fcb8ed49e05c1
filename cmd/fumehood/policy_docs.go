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

func policyDocsDoor() *door {
	return &door{
		name:     "policy docs",
		synopsis: "write what the rules are, from their METADATA, as Markdown",
		usage: `[flags]

Without a policy it is the default's page.

examples:
  fumehood policy docs > rules.md
  fumehood policy docs --policy .fumehood/policy --output RULES.md
  fumehood policy docs --json | jq -r 'select(.set == "deny").id'
`,
		run: documentPolicy,
	}
}

func documentPolicy(c *call) int {
	var policies policyFlags
	var output string
	var asJSON bool
	f := c.flags()
	policies.define(f)
	f.StringVar(&output, "output", "", "write the page to this `file`")
	f.BoolVar(&asJSON, "json", false, "print one rule a line as JSON")
	if code, ok := c.parse(f); !ok {
		return code
	}
	if f.NArg() > 0 || asJSON && output != "" {
		return c.misuse("policy docs takes no argument, and --json goes to standard output")
	}
	layers, err := policies.layers(c.ctx)
	if err != nil {
		return c.stopped(err)
	}
	rules, err := manual.Rules(layers...)
	if err != nil {
		return c.stopped(err)
	}
	if asJSON {
		for _, r := range rules {
			if err := c.printJSON(json.Marshal(r)); err != nil {
				return c.stopped(err)
			}
		}
		return exitOK
	}
	return c.writePage(rules, output)
}

func (c *call) writePage(rules []manual.Rule, output string) int {
	var page bytes.Buffer
	err := manual.Write(&page, rules)
	switch {
	case err != nil:
	case output == "":
		_, err = c.stdout.Write(page.Bytes())
	default:
		if err = replaceFile(output, page.Bytes()); err != nil {
			err = unwritable(output, err)
		}
	}
	if err != nil {
		return c.stopped(err)
	}
	return exitOK
}

func unwritable(file string, err error) error {
	return &proposal.StopError{Code: "policy.not-writable", Message: fmt.Sprintf("cannot write %q", file), Hint: hintUnwritable, Err: err}
}
