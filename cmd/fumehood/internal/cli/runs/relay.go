// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"io"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/review"
	models "github.com/fumehood/fumehood/internal/review/model"
)

// attachParent lets a review end with the job that started it, and the verification of findings at
// --timeout. For a model, that job is also who asks it. It returns what to do at the end.
func (s *reviewFlags) attachParent(c *cli.Invocation) (done func()) {
	ends := []context.CancelFunc{}
	add := func(ctx context.Context, cancel context.CancelFunc) { c.Ctx, ends = ctx, append(ends, cancel) }
	switch {
	case s.Review.Model != nil:
		ctx, cancel := context.WithCancel(c.Ctx)
		s.asked.Through = models.NewRelay(c.Stdin, c.Stdout, cancel)
		c.Stdout = io.Discard
		add(ctx, cancel)
	case s.fromJob:
		add(process.UntilEnd(c.Ctx, c.Stdin))
	}
	if s.Timeout > 0 && s.Review.Findings != "" {
		add(context.WithTimeout(c.Ctx, s.Timeout))
	}
	return func() {
		for _, cancel := range ends {
			cancel()
		}
	}
}

// reviewKeeper returns a function that keeps what a review has shown.
func (s *reviewFlags) reviewKeeper(c *cli.Invocation) func(review.Document, error) (review.Document, error) {
	return func(d review.Document, err error) (review.Document, error) {
		owner, wrong := process.ParseOwner(s.settings.Owner)
		if d.Schema != "" && wrong == nil {
			wrong = d.KeepFiles(review.Files{Logs: s.Artifacts, Document: s.Report, Owner: owner}, s.Early.Text)
		}
		return d, errors.Join(err, wrong)
	}
}
