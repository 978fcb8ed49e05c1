// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func testCommand(c *cli.Invocation) *cobra.Command {
	var o testFlags
	cmd := &cobra.Command{
		Use:   "test [flags] [DIR…]",
		Short: "Run the tests of policies and list the rules that no test reaches",
		Long: `Run the tests of policies. Tests are rules test_… in files that end in _test.rego, the
examples match and not_match in the METADATA of rules, and cases in files named cases.yaml:

  schema: fumehood.cases/v1
  cases:
    - name: tests may run
      run: go test ./...
      want: allow
    - name: no flag that runs another program
      run: go test -exec ./x ./...
      want: deny
      rule: code.program
    - {name: only people with write access start a run, pr: fork, actor: read, want: deny}

Each DIR is tested as a --policy directory, and the policies that flags name, too, if they have
tests. The default policy decides with them, as in a run. In Rego tests,
fumehood.parse("go test ./...") is the input of fumehood.command, and
fumehood.decide("go test ./...") is the decision of all layers.

An allow fails if its example is denied by its own or a higher layer: the rule has no effect.

Exit codes: 0 all passed; 1 a test failed, none ran, or too few rules were reached; 3 a policy
does not compile`,
		Example: `  fumehood policy test ./policy
  fumehood policy test --organization ./org --coverage --threshold 80
  fumehood policy test ./policy --organization ./org --run 'fork|curl'
  fumehood policy test --default --junit tests.xml`,
		RunE: c.Run(func(args []string) int {
			o.folders = args
			return testPolicy(c, &o)
		}),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	o.defineFlags(cmd)
	return cmd
}

// testFlags are the flags of policy test.
type testFlags struct {
	policies  runs.Policies
	folders   cli.List
	shipped   bool
	only      string
	coverage  bool
	threshold float64
	deadline  time.Duration
	format    cli.Format
	junit     string
	verbose   bool
}

func (o *testFlags) defineFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.shipped, "default", false, "run the tests of the default policy")
	f.StringVar(&o.only, "run", "", "`REGEXP` run only tests whose names match")
	f.BoolVar(&o.coverage, "coverage", false, "list the rules that no test reaches, with a percentage")
	f.Float64Var(&o.threshold, "threshold", 0, "`PERCENT` exit with 1 if tests reach a smaller part of the rules")
	f.DurationVar(&o.deadline, "timeout", 5*time.Second, "`DURATION` stop each test after this processor time")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "also list the tests that pass")
	f.StringVar(&o.junit, "junit", "", "`FILE` also write the results to this file, as JUnit XML")
	o.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	o.policies.Define(cmd)
	cli.NoFiles(cmd, "run", "threshold", "timeout")
}

func testPolicy(c *cli.Invocation, o *testFlags) int {
	options, code, ok := readTrial(c, o)
	if !ok {
		return code
	}
	report, err := trial.Run(c.Ctx, options)
	if err != nil {
		return c.Stop(err)
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, report); err != nil {
			return c.Stop(&proposal.StopError{Code: "policy.write", Message: fmt.Sprintf("cannot write %q", o.junit),
				Hint: cli.HintUnwritable, Err: err})
		}
	}
	if err := printTrial(c, report, o); err != nil {
		return c.Stop(err)
	}
	return reportLacks(c, report, o)
}

func printTrial(c *cli.Invocation, r trial.Report, o *testFlags) error {
	view := trial.View{Passed: o.verbose, Coverage: o.coverage, Filtered: o.only != "",
		Color: o.format.Is(cli.Text) && terminal.WantsColors(c.Stdout)}
	return c.PrintAnswer(o.format, func() error { return c.PrintJSON(json.MarshalIndent(r, "", "  ")) },
		func(w io.Writer) error {
			r.Write(w, view)
			return nil
		})
}

// readTrial reads the policies. If it returns false, the command ends with this exit code.
func readTrial(c *cli.Invocation, o *testFlags) (trial.Options, int, bool) {
	options := trial.Options{Analyse: order.AnalyzeProposal, Cases: plan.DecodeCases, Deadline: o.deadline,
		Progress: runs.NewProgress(c.Stderr).PrintTest}
	if o.threshold < 0 || o.threshold > 100 || o.deadline <= 0 {
		return options, c.ReportMisuse("--threshold must be from 0 to 100, and --timeout greater than 0"), false
	}
	if o.shipped && len(o.policies.Granting) > 0 {
		return options, c.ReportMisuse("--default and --granting exclude each other: only one policy can be the one that allows"), false
	}
	if o.only != "" {
		only, err := regexp.Compile(o.only)
		if err != nil {
			return options, c.ReportMisuse(fmt.Sprintf("--run: %v", err)), false
		}
		options.Only = only
	}
	var err error
	if options.Tried, options.Beside, err = o.policies.ReadTested(c.Ctx, o.folders, o.shipped); err != nil {
		return options, c.Stop(err), false
	}
	if len(options.Tried) == 0 {
		return options, c.ReportMisuse("policy test needs a directory or --default"), false
	}
	return options, cli.OK, true
}

func writeJUnit(path string, r trial.Report) error {
	var b bytes.Buffer
	if err := r.JUnit(&b); err != nil {
		return err
	}
	return cli.ReplaceFile(path, b.Bytes())
}

// reportLacks returns the exit code, and prints why the tests are not enough.
func reportLacks(c *cli.Invocation, r trial.Report, o *testFlags) int {
	code := cli.OK
	if r.Failed > 0 {
		code = cli.Refused
	}
	for _, lack := range r.CheckSufficient(o.only, o.threshold) {
		code = cli.Refused
		fmt.Fprintf(c.Stderr, "fumehood: %s: %s\nfumehood: hint: %s\n", lack.Code, terminal.EscapeLine(lack.Message),
			lack.Hint)
	}
	c.PrintWarnings(r.Warnings...)
	return code
}
