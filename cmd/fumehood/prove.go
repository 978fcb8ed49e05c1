// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/export"
)

func (c *invocation) proveCommand() *cobra.Command {
	var trust audit.Trust
	cmd := &cobra.Command{
		Use:     "prove LOG ID [flags]",
		GroupID: cli.GroupEvidence,
		Short:   "Print a proof that an entry is in an audit log",
		Long: `Print a proof that an entry is in an audit log. fumehood verify --proof checks it without
the log. ID is the id of a proposal (its result is proved, or its decision if it has no
result) or the number of an entry.`,
		Example: `  fumehood prove audit.jsonl unit > unit.tlog-proof
  fumehood verify --proof unit.tlog-proof --report report.json
  fumehood prove audit.jsonl 7`,
		Args:              cli.Args(2, "a log and an id"),
		ValidArgsFunction: cli.Once,
		RunE:              c.Run(func(args []string) int { return c.proveEntry(trust, args[0], args[1]) }),
	}
	defineTrust(cmd, &trust, false)
	return cmd
}

func (c *invocation) proveEntry(trust audit.Trust, name, id string) int {
	log, err := audit.OpenFile(name)
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	proof, err := export.Prove(log, trust, id)
	return c.Exit(exitOK, c.Print(proof, err))
}
