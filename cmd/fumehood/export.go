// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/export"
	"github.com/fumehood/fumehood/pkg/export/otlp"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func exportCommand() *command {
	return &command{
		name:     "export",
		synopsis: "give a run's decisions to other systems: lines of JSON, or an OpenTelemetry collector",
		usage: `LOG|REPORT [flags]

With --to decisions each line is one decision, in the form of OPA's decision log; the
schema is testdata/schema/fumehood.decision.v1.json. With --to otlp the run is sent as
a trace, its decisions and findings as log records, by OTLP over HTTP.

A log is verified first; of one that was changed nothing is exported. A report tells of
proposals, commands and findings; the log, audit.jsonl, of programs and connections, too.
Ids are the same each time, so that what is exported twice can be told.

exit codes: 0 exported, 1 the log was changed (nothing is exported) or cut off (what was
signed is), 3 cannot be read, written or sent

examples:
  fumehood export audit.jsonl
  fumehood export audit.jsonl --key "$(jq -r .audit.key report.json)" --out decisions.jsonl
  fumehood export audit.jsonl | jq -r 'select(.result.effect == "deny") | [.decision_id, .path, .result.rules[0]] | @tsv'
  fumehood export audit.jsonl --to otlp --endpoint http://127.0.0.1:4318
  fumehood export audit.jsonl --to otlp --endpoint https://otlp.example --otlp-header Authorization=OTLP_AUTHORIZATION
  fumehood export --attributes
`,
		run: exportRun,
	}
}

// exportCommandFlags are the flags of export.
type exportCommandFlags struct {
	to, out    string
	trust      audit.Trust
	all, table bool
	otlp       otlpFlags
}

func (x *exportCommandFlags) define(f *flag.FlagSet) {
	f.StringVar(&x.to, "to", "decisions", "`FORM`: decisions or otlp")
	f.StringVar(&x.out, "out", "", "write decisions to this `file` instead of standard output")
	f.BoolVar(&x.all, "all", false, "every program that began, too: not only those that were refused or would have been")
	f.StringVar(&x.trust.Key, "key", "", "verifier key that the log must be signed with, from the report")
	f.StringVar(&x.trust.Checkpoint, "checkpoint", "", "checkpoint that the log must hold, from the report")
	f.StringVar(&x.otlp.endpoint, "endpoint", "", "`URL` of the collector, without /v1/traces")
	f.BoolVar(&x.table, "attributes", false, "print the table of OpenTelemetry attributes and end")
	x.otlp.define(f)
}

func exportRun(c *invocation) int {
	var x exportCommandFlags
	f := c.Flags()
	x.define(f)
	alone := len(c.Args) == 1
	args, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	if x.table && alone {
		fmt.Fprint(c.Stdout, otlp.Table())
		return exitOK
	}
	if wrong := x.misuse(); wrong != "" {
		return c.Misuse(wrong)
	}
	if len(args) != 1 {
		return c.Misuse("export needs a log or a report")
	}
	x.trust.Checkpoint = endLine(x.trust.Checkpoint)
	exporter, err := x.otlp.exporter()
	if err != nil {
		return c.MisuseOf(err)
	}
	file, err := audit.OpenFile(args[0])
	if err != nil {
		return c.Stop(err)
	}
	defer file.Close()
	return c.export(&x, file, exporter)
}

// misuse says what is wrong with the flags together.
func (x *exportCommandFlags) misuse() string {
	switch {
	case x.table:
		return "--attributes stands alone"
	case x.to != "decisions" && x.to != "otlp":
		return fmt.Sprintf("--to %q is neither decisions nor otlp", terminal.Line(x.to))
	case x.to == "otlp" && x.otlp.endpoint == "":
		return "--to otlp needs --endpoint URL"
	case x.to == "otlp" && x.out != "":
		return "--out is for --to decisions"
	case x.to == "decisions" && x.otlp.given():
		return "--endpoint and --otlp-… are for --to otlp"
	}
	return ""
}

// export reads file and gives what it tells to where the flags say.
func (c *invocation) export(x *exportCommandFlags, file *os.File, exporter *otlp.Exporter) int {
	var code int
	var err error
	if x.to == "otlp" {
		code, err = c.sendFile(x, file, exporter)
	} else {
		code, err = c.writeFile(x, file)
	}
	if err == nil {
		return code
	}
	code = c.Stop(err)
	if proposal.FailureOf(err).Code == export.CodeUnverified {
		return exitRefused
	}
	return code
}

func (c *invocation) sendFile(x *exportCommandFlags, file *os.File, exporter *otlp.Exporter) (int, error) {
	var b otlp.Batch
	story, code, err := c.read(x, file, b.Take)
	if err != nil {
		return code, err
	}
	ctx, cancel := otlp.Bounded(c.Ctx)
	defer cancel()
	return code, exporter.Send(ctx, story, &b)
}

func (c *invocation) writeFile(x *exportCommandFlags, file *os.File) (int, error) {
	out, err := c.decisions(x.out)
	if err != nil {
		return exitStopped, err
	}
	_, code, err := c.read(x, file, out.Write)
	if err != nil {
		out.Abandon()
		return code, err
	}
	return code, out.Close()
}

// decisions opens the file for decisions, or standard output for "".
func (c *invocation) decisions(path string) (*export.Writer, error) {
	if path == "" {
		return export.NewWriter(c.Stdout), nil
	}
	return export.Create(path)
}

// read tells file's decisions to each. The code is what the log's end says.
func (c *invocation) read(x *exportCommandFlags, file *os.File, each func(export.Decision) error) (export.Story, int, error) {
	o := export.Options{All: x.all, TraceParent: os.Getenv("TRACEPARENT")}
	if report.Is(file) {
		r, err := report.ReadFrom(file)
		if err != nil {
			return export.Story{}, exitStopped, err
		}
		c.Warn("a report has proposals, commands and findings only; export the audit log for programs and connections")
		story, err := export.Report(r, o, each)
		return story, exitOK, err
	}
	story, summary, err := export.Log(file, x.trust, o, each)
	if err != nil || summary.Complete() {
		return story, exitOK, export.Unverified(file.Name(), err)
	}
	c.Warn("the log is " + summary.String())
	return story, exitRefused, nil
}
