// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/trial"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report/progress"
	"github.com/fumehood/fumehood/pkg/terminal"
)

func policyTestCommand() *command {
	return &command{
		name:     "policy test",
		synopsis: "run the tests of policies, and say which rules none of them reaches",
		usage: `[flags] [FOLDER…]

Tests are rules test_… in files that end in _test.rego, the examples match and
not_match in the METADATA of rules, and cases in files called cases.yaml:

  schema: fumehood.cases/v1
  cases:
    - name: tests may run
      run: go test ./...
      want: allow
    - name: no flag that runs another program
      run: go test -exec ./x ./...
      want: deny
      rule: go.option
    - {name: a stranger starts nothing, pr: fork, actor: read, want: deny}

FOLDERs are tried as --policy folders; without one, the folders that flags name
are. The default policy decides with them, as it does in a run. In Rego tests
fumehood.parse("go test ./...") is the input of fumehood.command, and
fumehood.decide("go test ./...") the decision of all layers.

examples:
  fumehood policy test ./policy
  fumehood policy test --organisation ./org --coverage --threshold 80
  fumehood policy test ./policy --organisation ./org --run 'fork|curl'
  fumehood policy test --default --junit tests.xml

exit codes: 0 all passed, 1 a test failed, none ran, or too few rules were
reached, 2 usage, 3 a policy does not compile
`,
		run: testPolicy,
	}
}

// A tryout is what the flags of policy test say.
type tryout struct {
	policies  policyFlags
	folders   cli.List
	shipped   bool
	only      string
	coverage  bool
	threshold float64
	deadline  time.Duration
	json      bool
	junit     string
	verbose   bool
}

func (o *tryout) define(f *flag.FlagSet) {
	o.policies.define(f)
	f.BoolVar(&o.shipped, "default", false, "try the default policy's own tests")
	f.StringVar(&o.only, "run", "", "run the tests whose names match this `regexp`")
	f.BoolVar(&o.coverage, "coverage", false, "list the rules that no test reaches, with a percentage")
	f.Float64Var(&o.threshold, "threshold", 0, "fail when tests reach fewer than this `percentage` of the rules")
	f.DurationVar(&o.deadline, "timeout", 5*time.Second, "stop each test after this much processor time")
	f.BoolVar(&o.json, "json", false, "print the results as JSON")
	f.StringVar(&o.junit, "junit", "", "write the results as JUnit XML to this `file`")
	f.BoolVar(&o.verbose, "v", false, "list the tests that pass too")
}

func testPolicy(c *invocation) int {
	var o tryout
	f := c.Flags()
	o.define(f)
	folders, code, ok := c.ParseMixed(f)
	if !ok {
		return code
	}
	o.folders = folders
	options, code, ok := c.trialOf(&o)
	if !ok {
		return code
	}
	report, err := trial.Run(c.Ctx, options)
	if err != nil {
		return c.Stop(err)
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, report); err != nil {
			return c.Stop(&proposal.StopError{Code: "policy.write", Message: fmt.Sprintf("cannot write %q", o.junit), Hint: hintUnwritable, Err: err})
		}
	}
	if o.json {
		if err := c.PrintJSON(json.MarshalIndent(report, "", "  ")); err != nil {
			return c.Stop(err)
		}
	} else {
		report.Write(c.Stdout, trial.View{Passed: o.verbose, Coverage: o.coverage, Filtered: o.only != "", Color: terminal.Colors(c.Stdout)})
	}
	return c.trialCode(report, o)
}

// trialOf reads the policies. A false means that the call is over with this exit code.
func (c *invocation) trialOf(o *tryout) (trial.Options, int, bool) {
	options := trial.Options{Analyse: gate.Analyze, Cases: plan.DecodeCases, Deadline: o.deadline, Progress: progress.New(c.Stderr).Test}
	if o.threshold < 0 || o.threshold > 100 || o.deadline <= 0 {
		return options, c.Misuse("--threshold is a percentage from 0 to 100, and --timeout more than nothing"), false
	}
	if o.shipped && len(o.policies.Granting) > 0 {
		return options, c.Misuse("--default and --granting exclude each other: one policy allows"), false
	}
	if o.only != "" {
		only, err := regexp.Compile(o.only)
		if err != nil {
			return options, c.Misuse(fmt.Sprintf("--run: %v", err)), false
		}
		options.Only = only
	}
	beside, err := o.policies.layers(c.Ctx)
	if err != nil {
		return options, c.Stop(err), false
	}
	folders := o.policies // for the key of those that are bundles
	folders.Granting, folders.Organisation, folders.Hosts, folders.Restricting = nil, nil, nil, o.folders
	tried, err := folders.layers(c.Ctx)
	if err != nil {
		return options, c.Stop(err), false
	}
	if options.Tried, options.Beside = tried, beside; len(tried) == 0 && !o.shipped {
		options.Tried, options.Beside = beside, nil
	}
	if o.shipped {
		l, err := policy.Shipped()
		if err != nil {
			return options, c.Stop(err), false
		}
		options.Tried = append(options.Tried, l)
	}
	if len(options.Tried) == 0 {
		return options, c.Misuse("policy test needs a folder, or --default"), false
	}
	return options, exitOK, true
}

func writeJUnit(path string, r trial.Report) error {
	var b bytes.Buffer
	if err := r.JUnit(&b); err != nil {
		return err
	}
	return replaceFile(path, b.Bytes())
}

// trialCode prints why the tests are not enough, if they are not.
func (c *invocation) trialCode(r trial.Report, o tryout) int {
	code := exitOK
	if r.Failed > 0 {
		code = exitRefused
	}
	for _, lack := range r.Lacks(o.only, o.threshold) {
		code = exitRefused
		fmt.Fprintf(c.Stderr, "fumehood: %s: %s\nfumehood: hint: %s\n", lack.Code, terminal.Line(lack.Message), lack.Hint)
	}
	c.Warn(r.Warnings...)
	return code
}
