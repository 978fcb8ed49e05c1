// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The titles of groups of flags.
const (
	subjectTitle = "Command flags"
	inputTitle   = "Input flags"
)

// inputFlags are the flags of policy explain that print the input of rules.
type inputFlags struct {
	input         bool
	point, schema string
	describe      string
	from          string
}

func (s *inputFlags) defineFlags(cmd *cobra.Command) {
	cli.DefineGroup(cmd, inputTitle, func(f *pflag.FlagSet) {
		f.BoolVar(&s.input, "input", false, "print the input of rules at each decision point, one document per line")
		f.StringVar(&s.point, "point", "", "`POINT` print only the input of this decision point")
		f.StringVar(&s.from, "from", "",
			"`LOG` print the inputs of exec for the programs that started, or were refused, in an audit log or a report")
		f.StringVar(&s.describe, "describe", "",
			"`POINT` list the fields of the input of this decision point, and the sets that rules fill, with descriptions")
		f.StringVar(&s.schema, "schema", "", "`POINT` print the JSON Schema of the input of this decision point")
	})
	for _, flag := range []string{"point", "describe", "schema"} {
		cli.CompleteValues(cmd, flag, trial.Points()...)
	}
}

// isAsked reports whether the command line asks for an input, not for a decision.
func (s *inputFlags) isAsked() bool {
	return *s != inputFlags{}
}

// printInput prints what the input flags ask for. Inputs are the same for every policy.
func printInput(c *cli.Invocation, s *explainFlags, cmd *cobra.Command, args []string) int {
	asked := &s.input
	if name := otherFlag(cmd); name != "" {
		return c.ReportMisuse("--" + name + " is about decisions: the input is the same for every policy, and JSON")
	}
	if asked.schema != "" {
		if len(args) > 0 {
			return c.ReportMisuse("--schema takes no command: the schema is the same for every input")
		}
		return printSchema(c, asked.schema)
	}
	if asked.describe != "" {
		if len(args) > 0 {
			return c.ReportMisuse("--describe takes no command: the fields are the same for every input")
		}
		return describeInput(c, asked.describe)
	}
	if asked.from != "" {
		if len(args) > 0 || asked.point != "" && asked.point != "exec" {
			return c.ReportMisuse("--from takes no command, and prints the inputs of exec only")
		}
		return printPast(c, asked.from)
	}
	if code, ok := s.subject.readSubject(c, args); !ok {
		return code
	}
	about, _, err := s.policies.ReadContext()
	if err != nil {
		return c.Stop(err)
	}
	engine, err := runs.NewEngine(c.Ctx, policy.Options{Context: about})
	if err != nil {
		return c.Stop(err)
	}
	docs, err := s.subject.Documents(engine, asked.point)
	if err != nil {
		return c.ReportMisuse(wrongPoint(err))
	}
	return printDocuments(c, docs, asked.point != "")
}

// otherFlag returns a given flag that is neither about the subject nor about its input, or "".
func otherFlag(cmd *cobra.Command) (name string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if title := cli.TitleOf(f); title != subjectTitle && title != inputTitle {
			name = f.Name
		}
	})
	return name
}

// printPast prints the inputs of the programs in a log or a report. A rule that is tried on
// them is tried on what the kernel reports.
func printPast(c *cli.Invocation, path string) int {
	past, err := replay.Read([]string{path}, replay.Options{Parse: order.AnalyzeProposal})
	if err != nil {
		return c.Stop(err)
	}
	c.PrintNotes(past.Notes()...)
	engine, err := runs.NewEngine(c.Ctx, policy.Options{})
	if err != nil {
		return c.Stop(err)
	}
	var docs []policy.Document
	for _, run := range past.Runs {
		about, err := engine.WithContext(run.Context)
		if err != nil {
			return c.Stop(err)
		}
		for _, act := range run.Acts {
			for _, e := range act.Execs {
				x := e.Exec
				x.Command, x.Grants = act.Proposal.ID, act.Decision.Grant.Exec
				doc, _ := about.InputOf(&x)
				docs = append(docs, doc)
			}
		}
	}
	return printDocuments(c, docs, true)
}

func printSchema(c *cli.Invocation, point string) int {
	data, err := policy.InputSchema(point)
	if err != nil {
		return c.ReportMisuse(wrongPoint(err))
	}
	fmt.Fprintf(c.Stdout, "%s\n", data)
	return cli.OK
}

func describeInput(c *cli.Invocation, point string) int {
	fields, err := policy.InputFields(point)
	if err != nil {
		return c.ReportMisuse(wrongPoint(err))
	}
	answers, err := policy.ListAnswers(point)
	if err != nil {
		return c.Stop(err)
	}
	err = policy.WriteFields(c.Stdout, append(fields, policy.ContextFields()...))
	if err == nil {
		_, err = fmt.Fprintln(c.Stdout, "\nsets that rules fill, with the keys of their members and the policies whose rules count:")
	}
	if err == nil {
		err = policy.WriteAnswers(c.Stdout, answers)
	}
	return c.ExitCode(cli.OK, err)
}

// wrongPoint describes an invalid decision point, with the one that was probably meant.
func wrongPoint(err error) string {
	f := proposal.FailureOf(err)
	if f.Hint != "" {
		f.Message += ": " + f.Hint
	}
	return terminal.EscapeLine(f.Message)
}

func printDocuments(c *cli.Invocation, docs []policy.Document, bare bool) int {
	for _, d := range docs {
		write := d.NamedJSON
		if bare {
			write = d.JSON
		}
		if err := c.PrintJSON(write()); err != nil {
			return c.Stop(err)
		}
	}
	return cli.OK
}
