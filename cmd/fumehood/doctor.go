// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/doctor"
)

func (c *invocation) doctorCommand() *cobra.Command {
	var runsc string
	var node bool
	var format cli.Format
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		GroupID: cli.GroupSetup,
		Short:   "Check what this host can enforce, and how to fix the rest",
		Long: `Check what this host can enforce, and how to fix the rest.

With --node, check whether pods with the RuntimeClass fumehood can run on this host, as a node of
Kubernetes. The installed containerd-shim-fumehood-v1 does a part of it. It is run only if no one
but root can change it.

Exit codes: 0 commands, or pods, can run, 3 they cannot`,
		Example: `  fumehood doctor
  fumehood doctor --node
  fumehood doctor --json | jq '.[] | select(.state != "ok")'`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return c.runDoctor(runsc, node, format) }),
	}
	cmd.Flags().StringVar(&runsc, "runsc", "", "`FILE` check this fumehood-runsc")
	cmd.Flags().BoolVar(&node, "node", false, "check this host as a node of Kubernetes: docs/KUBERNETES.md")
	format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	return cmd
}

func (c *invocation) runDoctor(runsc string, node bool, format cli.Format) int {
	var checks []doctor.Check
	switch {
	case node && runsc != "":
		return c.ReportMisuse("--node checks the fumehood-runsc that is installed: use it without --runsc")
	case node:
		checks = doctor.ExamineNode(c.Ctx)
	default:
		checks = doctor.ExamineHost(c.Ctx, runsc, runs.NewProgress(c.Stderr).PrintNotice)
	}
	code := exitOK
	if !doctor.IsReady(checks) {
		code = exitStopped
	}
	return c.ExitCode(code, c.PrintAnswer(format, func() error { return c.PrintJSON(json.Marshal(checks)) },
		func(w io.Writer) error { return doctor.Write(w, checks) }))
}
