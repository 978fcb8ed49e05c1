// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/review"
	models "github.com/fumehood/fumehood/internal/review/model"
)

// modelFlags are the flags of review that ask a model.
type modelFlags struct {
	review.ReviewerOptions
	env cli.List
}

func (m *modelFlags) defineFlags(cmd *cobra.Command) {
	cli.DefineGroup(cmd, "Model flags", func(f *pflag.FlagSet) {
		f.StringVar(&m.Provider, "provider", "",
			"`NAME` ask a model: anthropic, openai (or any service with its interface), gemini, or command. Key and address are read from ANTHROPIC_, OPENAI_ or GEMINI_API_KEY and _BASE_URL")
		f.StringVar(&m.Model, "model", "", "`NAME` the model, as the provider names it")
		f.StringVar(&m.Command, "model-command", "", "`FILE` program of the provider command; it speaks JSON lines")
		f.Var(&m.env, "model-env", "`VARIABLE` variable that the program gets; it gets no others; may be repeated")
		f.IntVar(&m.Rounds, "max-rounds", review.DefaultRounds, "`N` requests that the model may answer")
		f.Int64Var(&m.MaxOutput, "max-output-tokens", review.DefaultMaxOutput, "`N` maximum length of an answer")
		f.StringVar(&m.Review.USD, "max-usd", "",
			"`USD` maximum cost of this review (default 2, if the model's price is known)")
		f.Int64Var(&m.Review.Tokens, "max-tokens", -1,
			"`N` maximum tokens of this review, input and output; -1 for no limit")
		f.StringVar(&m.PR.USD, "max-usd-per-pr", "", "`USD` maximum cost of all reviews of this head in this clone")
		f.Int64Var(&m.PR.Tokens, "max-tokens-per-pr", -1,
			"`N` maximum tokens of all reviews of this head in this clone; -1 for no limit")
		f.StringVar(&m.Day.USD, "max-usd-per-day", "", "`USD` maximum cost of all reviews of a day (UTC)")
		f.Int64Var(&m.Day.Tokens, "max-tokens-per-day", -1,
			"`N` maximum tokens of all reviews of a day (UTC); -1 for no limit")
		f.StringVar(&m.Prices, "prices", "", "`FILE` table of prices that replaces the shipped one")
	})
	cli.CompleteValues(cmd, "provider", models.Providers...)
	cli.NoFiles(cmd, "model", "model-env", "max-rounds", "max-output-tokens", "max-usd", "max-tokens", "max-usd-per-pr",
		"max-tokens-per-pr", "max-usd-per-day", "max-tokens-per-day")
}

// askModel has a model review the commits. Its key is redacted from everything.
func (s *reviewFlags) askModel(c *cli.Invocation, local review.Local) (d review.Document, err error) {
	s.asked.Getenv, s.asked.Env, s.asked.Timeout = os.Getenv, s.asked.env, s.Timeout
	s.asked.Subject = local.LimitSubject(s.Subject.Repository, s.Subject.PR)
	r, err := s.prepareReviewer()
	if err != nil {
		return d, err
	}
	if s.Artifacts != "" {
		r.Dir = review.ModelDir(s.Artifacts)
	}
	r.Guidance = func(trusted string) (review.Guidance, error) { return review.ReadGuidance(s.Config, trusted) }
	return local.ReviewChange(c.Ctx, r)
}

// prepareReviewer returns the reviewer without guidance, and adds the values of the model to those to redact
// from everything. The error is a *proposal.StopError.
func (s *reviewFlags) prepareReviewer() (review.Reviewer, error) {
	r, masks, err := s.asked.PrepareReviewer()
	if err != nil {
		return r, err
	}
	s.Masks = slices.Concat(s.Masks, masks)
	secrets, err := s.settings.ReadSecrets(s.Masks, os.Getenv)
	if err != nil {
		return r, err
	}
	if r.Redactor, err = secrets.NewRedactor(); err != nil {
		return r, err
	}
	if r.Signer, err = s.settings.ReadSigner(); err != nil {
		return r, err
	}
	r.Owner, err = process.ParseOwner(s.settings.Owner)
	return r, err
}
