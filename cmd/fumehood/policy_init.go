// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/pkg/policy/starter"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policyInitCommand() *command {
	return &command{
		name:     "policy init",
		synopsis: "write a first policy for a repository, with its tests",
		usage: `[REPOSITORY] [flags]

It looks at the names of the repository's files (go.mod, package.json …), two folders
deep, and writes ` + starter.Folder + ` below it, which must not exist.

examples:
  fumehood policy init
  fumehood policy init ~/src/project --kind go,node
`,
		run: initPolicy,
	}
}

func initPolicy(c *invocation) int {
	var kind string
	var asJSON bool
	f := c.Flags()
	f.StringVar(&kind, "kind", "", "what the repository is, in place of looking: `KINDS` of "+strings.Join(starter.Kinds(), ", ")+", separated by commas")
	f.BoolVar(&asJSON, "json", false, "print what was written as JSON")
	args, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if len(args) > 1 {
		return c.Misuse("policy init takes one repository")
	}
	kinds, err := starter.ParseKinds(kind)
	if err != nil {
		return c.Misuse(terminal.Line(err.Error()))
	}
	wrote, err := starter.Write(append(args, ".")[0], kinds)
	if err != nil {
		return c.Stop(err)
	}
	if !asJSON {
		fmt.Fprint(c.Stdout, wrote)
	} else if err := json.NewEncoder(c.Stdout).Encode(wrote); err != nil {
		return c.Stop(err)
	}
	return exitOK
}
