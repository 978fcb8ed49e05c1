// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/evidence"
	"github.com/fumehood/fumehood/internal/evidence/export"
	"github.com/fumehood/fumehood/internal/evidence/export/otlp"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func (c *invocation) exportCommand() *cobra.Command {
	var x exportCommandFlags
	cmd := &cobra.Command{
		Use: `export LOG|REPORT [flags]
LOG --proof ID [flags]
--attributes`,
		GroupID: cli.GroupEvidence,
		Short:   "Export a run as JSON lines or to an OpenTelemetry collector, or the proof of an entry",
		Long: `Export the decisions of a run. With --to decisions, each line is one decision in the form of
OPA's decision log; its schema is testdata/schema/fumehood.decision.v1.json. The last line of
a run is for the run: custom.sequence counts lines, so that a gap is seen. With --to otlp,
the run is sent as a trace, and its decisions and findings as log records, by OTLP over HTTP.

The log is verified first; an altered log is not exported. A report contains proposals,
commands and findings. The log, audit.jsonl, also contains programs and connections. Ids are
the same each time, so that duplicates can be recognized.

With --proof, print a proof that an entry is in the log. fumehood verify --proof checks it without
the log. ID is the id of a proposal (its result is proved, or its decision if it has no result) or
the number of an entry.

Exit codes: 0 exported; 1 the log was altered (nothing is exported) or cut off (its signed
part is exported); 3 cannot be read, written, sent or proved`,
		Example: `  fumehood export audit.jsonl
  fumehood export audit.jsonl --report report.json --out decisions.jsonl
  fumehood export audit.jsonl | jq -r 'select(.result.effect == "deny") | [.decision_id, .path, .result.rules[0]] | @tsv'
  fumehood export audit.jsonl --to otlp --endpoint http://127.0.0.1:4318
  fumehood export audit.jsonl --to otlp --endpoint https://otlp.example --otlp-header Authorization=OTLP_AUTHORIZATION
  fumehood export audit.jsonl --proof unit > unit.tlog-proof
  fumehood verify --proof unit.tlog-proof --report report.json
  fumehood export --attributes`,
		ValidArgsFunction: cli.CompleteFirstFile,
	}
	x.defineFlags(cmd)
	cmd.RunE = c.Run(func(args []string) int {
		if cmd.Flags().Changed("proof") {
			return c.proveEntry(&x, cmd, args)
		}
		return c.exportRun(&x, args, cmd.Flags().NFlag())
	})
	return cmd
}

// exportCommandFlags are the flags of export.
type exportCommandFlags struct {
	to, out    string
	proof      string // id or number of an entry
	trust      audit.Trust
	all, table bool
	otlp       runs.Collector
}

func (x *exportCommandFlags) defineFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&x.to, "to", "decisions", "`FORM` decisions or otlp")
	f.StringVar(&x.out, "out", "", "`FILE` write to this file instead of standard output")
	f.BoolVar(&x.all, "all", false, "export every started program, not only those that were or would have been refused")
	f.StringVar(&x.proof, "proof", "",
		"`ID` print a proof that the log has the result or the decision of a proposal, or the entry with a number")
	f.BoolVar(&x.table, "attributes", false, "print the table of OpenTelemetry attributes and exit")
	defineTrust(cmd, &x.trust, true)
	x.otlp.Flag, x.otlp.Describe = "endpoint", "`URL` address of the collector, without /v1/traces"
	x.otlp.Define(cmd)
	cli.CompleteValues(cmd, "to", evidence.ExportForms()...)
	cli.NoFiles(cmd, "proof")
}

// exportRun exports the log or report that args name. flags is the number of flags given.
func (c *invocation) exportRun(x *exportCommandFlags, args []string, flags int) int {
	if x.table && len(args) == 0 && flags == 1 {
		fmt.Fprint(c.Stdout, otlp.AttributeTable())
		return exitOK
	}
	if wrong := x.findMisuse(); wrong != "" {
		return c.ReportMisuse(wrong)
	}
	if len(args) != 1 {
		return c.ReportMisuse("export needs a log or a report")
	}
	exporter, err := x.otlp.NewExporter(c.Version)
	if err != nil {
		return c.MisuseOf(err)
	}
	whole, err := evidence.Export{Form: x.to, Trust: x.trust,
		Options: export.Options{All: x.all, TraceParent: os.Getenv("TRACEPARENT")},
		Path:    x.out, Out: c.Stdout, Exporter: exporter, Warn: c.PrintWarnings}.ExportFile(c.Ctx, args[0])
	switch {
	case err != nil && proposal.FailureOf(err).Code != export.CodeUnverified:
		return c.Stop(err)
	case err != nil:
		c.Stop(err)
		return exitRefused
	case !whole:
		return exitRefused
	}
	return exitOK
}

// proveEntry prints the proof of an entry of the log that args name.
func (c *invocation) proveEntry(x *exportCommandFlags, cmd *cobra.Command, args []string) int {
	for _, flag := range []string{"to", "out", "all", "attributes"} {
		if cmd.Flags().Changed(flag) || x.otlp.IsSet() {
			return c.ReportMisuse("--proof takes a log, and no flag but those of trust")
		}
	}
	if len(args) != 1 {
		return c.ReportMisuse("export --proof needs a log")
	}
	log, err := audit.OpenFile(args[0])
	if err != nil {
		return c.Stop(err)
	}
	defer log.Close()
	proof, err := export.ProveEntry(log, x.trust, x.proof)
	return c.ExitCode(exitOK, c.Print(proof, err))
}

// findMisuse returns why the flags cannot be combined, or "".
func (x *exportCommandFlags) findMisuse() string {
	switch {
	case x.table:
		return "--attributes takes no other flag or argument"
	case !slices.Contains(evidence.ExportForms(), x.to):
		return fmt.Sprintf("invalid value %q for --to: use decisions or otlp", terminal.EscapeLine(x.to))
	case x.to == evidence.OTLP && x.otlp.Endpoint == "":
		return "--to otlp needs --endpoint URL"
	case x.to == evidence.OTLP && x.out != "":
		return "--to otlp does not write --out"
	case x.to != evidence.OTLP && x.otlp.IsSet():
		return "--endpoint and --otlp-… need --to otlp"
	}
	return ""
}
