// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"

	"github.com/fumehood/fumehood/pkg/gate/doctor"
	"github.com/fumehood/fumehood/pkg/report/progress"
)

func doctorCommand() *command {
	return &command{
		name:     "doctor",
		synopsis: "check what this host can enforce, and how to fix the rest",
		usage: `[flags]

exit codes: 0 commands can run, 3 they cannot

examples:
  fumehood doctor
  fumehood doctor --json | jq '.[] | select(.state != "ok")'
`,
		run: runDoctor,
	}
}

func runDoctor(c *invocation) int {
	var runsc string
	var asJSON bool
	f := c.Flags()
	f.StringVar(&runsc, "runsc", "", "look at this fumehood-runsc")
	f.BoolVar(&asJSON, "json", false, "print the checks as JSON")
	if code, ok := c.Parse(f); !ok {
		return code
	}
	checks := doctor.Examine(c.Ctx, runsc, progress.New(c.Stderr).Notice)
	code := exitOK
	for _, k := range checks {
		if k.State == doctor.Missing {
			code = exitStopped
		}
	}
	var err error
	if asJSON {
		err = json.NewEncoder(c.Stdout).Encode(checks)
	} else {
		err = doctor.Write(c.Stdout, checks)
	}
	if err != nil {
		return c.Stop(err)
	}
	return code
}
