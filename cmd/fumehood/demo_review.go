// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli/runs"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/settings"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/testdata/demo"
)

// demoReview reviews the sample pull request in dir with a recorded conversation.
func (c *invocation) demoReview(s *runs.Flags, dir string) int {
	runs.NewProgress(c.Stderr).PrintNotice("a model reviews a small pull request: its part is recorded, so no key is needed and no model is asked; commands and reproducers really run, which takes 15 to 60 s")
	clone := filepath.Join(dir, "clone")
	if err := demo.WriteRepository(c.Ctx, clone); err != nil {
		return c.Stop(err)
	}
	r, err := review.ReplayAnswers(demo.Answers(), filepath.Join(dir, "spend"))
	if err != nil {
		return c.Stop(err)
	}
	if r.Redactor, err = (settings.Secrets{}).NewRedactor(); err != nil {
		return c.Stop(err)
	}
	r.Guidance = func(string) (review.Guidance, error) { return review.Guidance{}, nil }
	local := review.Local{Repository: clone, Base: "base", Head: "head",
		Open: func(tree, trusted string) (*gate.Gate, error) {
			flags := *s
			flags.Workspace, flags.Trusted, flags.Repeated = tree, trusted, true
			return flags.Open(&c.Invocation)
		}}
	code := runs.PrintReview(&c.Invocation, s.Format,
		func() (review.Document, error) { return local.ReviewChange(c.Ctx, r) })
	if code == exitStopped {
		return code
	}
	return exitOK
}
