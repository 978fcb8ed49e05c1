// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// reviewFlags are the flags of review. Its workspace is a clone.
type reviewFlags struct {
	Flags
	asked modelFlags
}

// ReviewCommand returns the command review.
func ReviewCommand(c *cli.Invocation) *cobra.Command {
	var s reviewFlags
	cmd := &cobra.Command{
		Use:     "review {--findings FILE | --provider NAME --model NAME} --base REF [--head REF] [flags]",
		GroupID: cli.GroupRun,
		Short:   "Verify the findings of a reviewer, or of a model, by running their reproducers",
		Long: `Verify the findings of any reviewer, a person or a model. Each finding names a command that
fails where its claim is true. It runs on the pull request's code (head) and on the code before
it (the merge base), three times each, every time in a new sandbox and decided by policy. A
finding whose command fails on head and succeeds on base is verified. A suggestion of a verified
finding is applied to a copy of head and offered only if the command succeeds there.

With --provider a model is asked for the findings. It proposes commands, policy decides them,
they run in a sandbox without network, and it reads their output, for at most --max-rounds
rounds and within a budget that is checked before each request. It changes nothing else.

Configuration and policy are those of the base. The clone's work tree and settings have no effect.

Exit codes: 0 no finding is verified, 1 a finding is verified, 2 the findings are invalid,
3 the review did not end, or nothing ran`,
		Example: `  fumehood review --findings findings.yaml --base origin/main
  fumehood review --findings - --base main --head feature --json < findings.json
  fumehood review --findings findings.yaml --base main --output markdown
  fumehood review --provider anthropic --model claude-sonnet-4-6 --max-usd 1 --base main`,
		Args: cli.NoArgs,
		RunE: c.Run(func([]string) int { return s.runReview(c) }),
	}
	f := cmd.Flags()
	f.StringVar(&s.Review.Findings, "findings", "", "`FILE` findings to verify, JSON or YAML; - for standard input")
	f.StringVar(&s.Review.Base, "base", "", "`REF` branch or commit that the pull request is for")
	f.StringVar(&s.Review.Head, "head", "HEAD", "`REF` branch or commit with the pull request's code")
	cli.NoFiles(cmd, "base", "head")
	s.asked.defineFlags(cmd)
	s.DefineConfigured(cmd)
	s.DefineCommon(cmd)
	s.defineJob(f)
	return cmd
}

func (s *reviewFlags) runReview(c *cli.Invocation) int {
	err := s.readSpec(c)
	if m := s.Review.Model; m != nil && err == nil {
		s.asked.Provider, s.asked.Model, s.asked.Rounds, s.asked.Review = m.Provider, m.Name, m.Rounds, m.Limit
	}
	asks := s.Review.Findings == ""
	switch {
	case err == nil && (asks == (s.asked.Provider == "") || s.Review.Base == ""):
		return c.ReportMisuse("review needs --base, and either --findings or --provider")
	case s.fromJob && s.Review.Findings == "-":
		return c.ReportMisuse("--job and --findings - both need standard input")
	case err != nil:
		return c.Stop(err)
	}
	defer s.attachParent(c)()
	local := review.Local{Repository: s.Workspace, Base: s.Review.Base, Head: s.Review.Head,
		Open: func(dir, trusted string) (*gate.Gate, error) {
			flags := s.Flags
			flags.Workspace, flags.Trusted, flags.Repeated = dir, trusted, true
			flags.Artifacts = "" // each run has its own
			return flags.Open(c)
		}}
	var findings proposal.ReviewFindings
	if !asks {
		var code int
		var ok bool
		if findings, code, ok = readFindings(c, s.Review.Findings); !ok {
			return code
		}
	}
	if err := process.CheckRoot(); err != nil {
		return c.Stop(err)
	}
	if asks {
		return PrintReview(c, s.Format,
			func() (review.Document, error) { return s.reviewKeeper(c)(s.askModel(c, local)) })
	}
	return PrintReview(c, s.Format,
		func() (review.Document, error) { return s.reviewKeeper(c)(local.VerifyFindings(c.Ctx, findings)) })
}

// PrintReview prints the Document of a review, and returns its exit code.
func PrintReview(c *cli.Invocation, format cli.Format, do func() (review.Document, error)) int {
	d, err := do()
	if d.Schema == "" {
		return c.Stop(err)
	}
	if out := printVerified(c, format, d); out != nil {
		return c.Stop(errors.Join(err, out))
	}
	switch {
	case err != nil:
		return c.Stop(err)
	case !d.Reviewed:
		return cli.Stopped
	case d.CountVerdict(review.Verified) > 0:
		return cli.Refused
	}
	return cli.OK
}

func readFindings(c *cli.Invocation, path string) (proposal.ReviewFindings, int, bool) {
	data, name, err := plan.ReadFile(path, c.Stdin)
	if err != nil {
		return proposal.ReviewFindings{}, c.ReportMisuse(fmt.Sprintf("cannot read findings: %v", err)), false
	}
	findings, problems := plan.DecodeFindings(data, name)
	for _, problem := range problems {
		fmt.Fprintf(c.Stderr, "fumehood: %s\n", plan.Describe(name, problem))
	}
	if len(problems) > 0 {
		fmt.Fprintln(c.Stderr, "fumehood: review.invalid: the findings are invalid; nothing runs")
		return findings, cli.Usage, false
	}
	return findings, cli.OK, true
}

func printVerified(c *cli.Invocation, format cli.Format, d review.Document) error {
	switch {
	case format.Is(cli.JSON):
		return c.PrintJSON(d.EncodeJSON())
	case format.Is(cli.Markdown):
		return c.Print([]byte(d.RenderMarkdown()), nil)
	}
	return c.Print([]byte(d.RenderText()), nil)
}
