// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/gate/doctor"
	"github.com/fumehood/fumehood/pkg/report/progress"
)

func (c *invocation) doctorCommand() *cobra.Command {
	var runsc string
	var format cli.Format
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		GroupID: groupSetup,
		Short:   "Check what this host can enforce, and how to fix the rest",
		Long: `Check what this host can enforce, and how to fix the rest.

Exit codes: 0 commands can run, 3 they cannot`,
		Example: `  fumehood doctor
  fumehood doctor --json | jq '.[] | select(.state != "ok")'`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.runDoctor(runsc, format) }),
	}
	cmd.Flags().StringVar(&runsc, "runsc", "", "`FILE` check this fumehood-runsc")
	format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	return cmd
}

func (c *invocation) runDoctor(runsc string, format cli.Format) int {
	checks := doctor.Examine(c.Ctx, runsc, progress.New(c.Stderr).Notice)
	code := exitOK
	for _, k := range checks {
		if k.State == doctor.Missing {
			code = exitStopped
		}
	}
	return c.Exit(code, c.Answer(format, func() error { return json.NewEncoder(c.Stdout).Encode(checks) },
		func(w io.Writer) error { return doctor.Write(w, checks) }))
}
