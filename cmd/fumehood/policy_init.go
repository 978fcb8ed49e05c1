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

func policyInitDoor() *door {
	return &door{
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

func initPolicy(c *call) int {
	var kind string
	var asJSON bool
	f := c.flags()
	f.StringVar(&kind, "kind", "", "what the repository is, in place of looking: `KINDS` of "+strings.Join(starter.Kinds(), ", ")+", separated by commas")
	f.BoolVar(&asJSON, "json", false, "print what was written as JSON")
	args, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(args) > 1 {
		return c.misuse("policy init takes one repository")
	}
	kinds, err := starter.ParseKinds(kind)
	if err != nil {
		return c.misuse(terminal.Line(err.Error()))
	}
	wrote, err := starter.Write(append(args, ".")[0], kinds)
	if err != nil {
		return c.stopped(err)
	}
	if !asJSON {
		fmt.Fprint(c.stdout, wrote)
	} else if err := json.NewEncoder(c.stdout).Encode(wrote); err != nil {
		return c.stopped(err)
	}
	return exitOK
}
