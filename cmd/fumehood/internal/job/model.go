// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/model"
)

// asking describes the model that the inputs name.
func (j *Job) asking() review.ReviewerOptions {
	return review.ReviewerOptions{Provider: j.in.Provider, Model: j.in.Model, Getenv: j.options.Getenv,
		Rounds: cmp.Or(j.in.MaxRounds, review.DefaultRounds), MaxOutput: review.DefaultMaxOutput,
		Review: review.LimitText{USD: j.in.MaxUSD, Tokens: noneIfZero(j.in.MaxTokens)},
		PR:     review.LimitText{Tokens: -1}, Day: review.LimitText{Tokens: -1}}
}

// modelSource lets the child ask a model through this process. Only this process has the key, which
// the step's environment gives it: the child starts the sandboxes, and gets neither environment
// nor key. So this process redacts the key, and the token, from what the model says before the child
// reads it.
func (j *Job) modelSource() (s reviewSource, err error) {
	a := j.asking()
	provider, keys, err := a.OpenProvider()
	if err != nil {
		return s, j.describeModel(err)
	}
	held := slices.Concat(keys, j.tokenMask())
	clean, err := redact.MasksOnly(held)
	if err != nil {
		return s, err
	}
	if j.redactor, err = redact.New(redact.Options{Masks: slices.Concat(j.masks(), held)}); err != nil {
		return s, err
	}
	s.name = "review by the model " + a.Model
	s.spec.Model = &runspec.Model{Provider: a.Provider, Name: a.Model, Rounds: a.Rounds, Limit: a.Review}
	s.serve = func(ctx context.Context, in io.Reader, out io.Writer) {
		model.Serve(ctx, in, out, provider, a.Model, clean)
	}
	return s, nil
}

// tokenMask is the token as a value to redact.
func (j *Job) tokenMask() []redact.Mask {
	if len(j.in.Token) < redact.MinMask {
		return nil
	}
	return []redact.Mask{{Name: "github_token", Value: j.in.Token}}
}
