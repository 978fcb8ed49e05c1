// SPDX-License-Identifier: Apache-2.0

//go:build linux

package policies

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/cli/runs"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/trial"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/replay"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// inputFlags are the flags of policy input.
type inputFlags struct {
	subject       subject
	point, schema string
	describe      string
	from          string
}

func inputCommand(c *cli.Invocation) *cobra.Command {
	var s inputFlags
	cmd := &cobra.Command{
		Use:   "input [flags] ['COMMAND']",
		Short: "Print the input of rules at each decision point, its schema or its fields",
		Long: `Print the input of rules at each decision point as JSON, its JSON Schema, or a
description of its fields.

` + subjectUsage,
		Example: `  fumehood policy input 'go test ./...'
  fumehood policy input --point command 'go test ./...' > input.json
  fumehood policy input --over 'exec={"path": "/usr/bin/curl"}'
  fumehood policy input --from audit.jsonl
  fumehood policy input --describe command
  fumehood policy input --schema command > command.schema.json`,
	}
	s.subject.define(cmd)
	f := cmd.Flags()
	f.StringVar(&s.point, "point", "", "`POINT` print only the input of this decision point, one document per line")
	f.StringVar(&s.schema, "schema", "", "`POINT` print the JSON Schema of the input of this decision point")
	f.StringVar(&s.describe, "describe", "", "`POINT` list the fields of the input of this decision point, with descriptions")
	f.StringVar(&s.from, "from", "", "`LOG` print the inputs of exec for the programs that started, or were refused, in an audit log or a report, one per line")
	cli.Values(cmd, "describe", trial.Points()...)
	cli.Values(cmd, "point", trial.Points()...)
	cli.Values(cmd, "schema", trial.Points()...)
	cmd.RunE = c.Run(func(args []string) int { return inputPolicy(c, &s, cmd, args) })
	return cmd
}

func inputPolicy(c *cli.Invocation, s *inputFlags, cmd *cobra.Command, args []string) int {
	if s.schema != "" {
		if len(args) > 0 {
			return c.Misuse("--schema takes no command: the schema is the same for every input")
		}
		return printSchema(c, s.schema)
	}
	if s.describe != "" {
		if len(args) > 0 {
			return c.Misuse("--describe takes no command: the fields are the same for every input")
		}
		return describeInput(c, s.describe)
	}
	if s.from != "" {
		if len(args) > 0 || s.point != "" && s.point != "exec" {
			return c.Misuse("--from takes no command, and prints the inputs of exec only")
		}
		return printPast(c, s.from)
	}
	if code, ok := s.subject.read(c, cmd, args); !ok {
		return code
	}
	engine, err := runs.NewEngine(c.Ctx, policy.Options{})
	if err != nil {
		return c.Stop(err)
	}
	docs, err := s.subject.Documents(engine, s.point)
	if err != nil {
		return c.Misuse(wrongPoint(err))
	}
	return printDocuments(c, docs, s.point != "")
}

// printPast prints the inputs of the programs in a log or a report. A rule that is tried on
// them is tried on what the kernel reports.
func printPast(c *cli.Invocation, path string) int {
	past, err := replay.Read([]string{path}, replay.Options{Parse: gate.Analyze})
	if err != nil {
		return c.Stop(err)
	}
	c.Note(past.Notes()...)
	engine, err := runs.NewEngine(c.Ctx, policy.Options{})
	if err != nil {
		return c.Stop(err)
	}
	var docs []policy.Document
	for _, run := range past.Runs {
		for _, act := range run.Acts {
			for _, e := range act.Execs {
				x := e.Exec
				x.Command, x.Grants = act.Proposal.ID, act.Decision.Grant.Exec
				doc, _ := engine.InputOf(&x)
				docs = append(docs, doc)
			}
		}
	}
	return printDocuments(c, docs, true)
}

func printSchema(c *cli.Invocation, point string) int {
	data, err := policy.InputSchema(point)
	if err != nil {
		return c.Misuse(wrongPoint(err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", data)
	return cli.OK
}

func describeInput(c *cli.Invocation, point string) int {
	fields, err := policy.InputFields(point)
	if err != nil {
		return c.Misuse(wrongPoint(err))
	}
	return c.Exit(cli.OK, policy.WriteFields(c.Stdout, fields))
}

// wrongPoint describes an invalid decision point, with the one that was probably meant.
func wrongPoint(err error) string {
	f := proposal.FailureOf(err)
	if f.Hint != "" {
		f.Message += ": " + f.Hint
	}
	return terminal.Line(f.Message)
}

func printDocuments(c *cli.Invocation, docs []policy.Document, bare bool) int {
	for _, d := range docs {
		write := d.Named
		if bare {
			write = d.JSON
		}
		if err := c.PrintJSON(write()); err != nil {
			return c.Stop(err)
		}
	}
	return cli.OK
}
