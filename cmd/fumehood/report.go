// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/evidence/report/timeline"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/audit"
)

// reportFlags are the flags of report.
type reportFlags struct {
	files              report.Files
	log, source, shown string
	format             cli.Format
}

func (c *invocation) reportCommand() *cobra.Command {
	var s reportFlags
	cmd := &cobra.Command{
		Use:     "report REPORT [flags]",
		GroupID: cli.GroupEvidence,
		Short:   "Show the report of a run, as text, HTML, Markdown, SARIF or JUnit",
		Long: `Show the report of a run, report.json, or write it in other forms. The HTML page is one file
without external parts. With --log, the page has the events of the audit log and the result
of verifying it with the key and the checkpoint in the report.

SARIF has denied commands, findings, and what failed commands say about lines of the files
in --workspace. JUnit has one test case for each command, and one for a run that stopped.

Exit codes: 0 shown or written, 1 the log was altered, cut off or is not sealed (the files
are written and say so), 3 cannot be read or written`,
		Example: `  fumehood report report.json
  fumehood report report.json --html report.html --log audit.jsonl
  fumehood report report.json -o html > report.html
  fumehood report report.json --sarif fumehood.sarif --workspace .
  fumehood report report.json --junit fumehood.xml`,
		Args:              cli.RequireArgs(1, "a report"),
		ValidArgsFunction: cli.CompleteFirstFile,
		RunE:              c.Run(func(args []string) int { return c.showReport(&s, args[0]) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.files.HTML, "html", "", "`FILE` write an HTML page")
	f.StringVar(&s.files.Markdown, "markdown", "", "`FILE` write the pull request comment, as GitHub's Markdown")
	f.StringVar(&s.files.SARIF, "sarif", "", "`FILE` write SARIF 2.1.0")
	f.StringVar(&s.files.JUnit, "junit", "", "`FILE` write JUnit XML")
	f.StringVar(&s.log, "log", "", "`FILE` audit log of the run, for --html")
	f.StringVar(&s.source, "workspace", "", "`DIR` directory of the pull request's code, for --sarif")
	f.StringVar(&s.shown, "comment", "",
		"`SETTINGS` detail and length of --markdown, for example detail=quiet,length=20000")
	cli.NoFiles(cmd, "comment")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown, "html", "sarif", "junit")
	return cmd
}

func (c *invocation) showReport(s *reportFlags, name string) int {
	lacks := func(setting, file, format string) bool { return setting != "" && file == "" && !s.format.Is(format) }
	if lacks(s.log, s.files.HTML, "html") || lacks(s.source, s.files.SARIF, "sarif") ||
		lacks(s.shown, s.files.Markdown, cli.Markdown) {
		return c.ReportMisuse("--log needs --html, --workspace needs --sarif, and --comment needs --markdown")
	}
	shown, err := config.MergeOverrides(config.Config{},
		config.Override{Field: "comment", Value: s.shown, From: "--comment"})
	if err != nil {
		return c.ReportMisuse(err.Error())
	}
	r, err := report.Open(name)
	if err != nil {
		return c.Stop(err)
	}
	if s.files == (report.Files{}) && s.format.Is(cli.Text) {
		return c.ExitCode(exitOK, c.Print([]byte(report.View{Color: terminal.WantsColors(c.Stdout),
			Width: terminal.Columns(c.Stdout)}.Render(r)), nil))
	}
	forms, code := report.Forms{Comment: shown.Config.Comment}, exitOK
	if s.source != "" {
		if forms.Sources, err = report.SourcesIn(s.source); err != nil {
			return c.Stop(err)
		}
	}
	if s.log != "" {
		var found audit.Finding
		if forms.Web, found, err = timeline.Web(s.log, r); err != nil {
			return c.Stop(err)
		}
		code = codeOf(found, found.Complete())
	}
	if err := s.files.Write(r, forms); err != nil {
		return c.Stop(err)
	}
	if !s.format.Is(cli.Text) {
		data, err := forms.Encode(s.format.String(), r)
		return c.ExitCode(code, c.Print(data, err))
	}
	return code
}
