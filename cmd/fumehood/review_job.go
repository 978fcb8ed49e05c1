// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"os"

	"github.com/fumehood/fumehood/pkg/process"
	"github.com/fumehood/fumehood/pkg/review"
)

// attach lets a review end with the job that started it, and the verification of findings at
// --timeout. It returns what to do at the end.
func (c *invocation) attach(s *reviewFlags) (done func()) {
	ends := []context.CancelFunc{}
	add := func(ctx context.Context, cancel context.CancelFunc) { c.Ctx, ends = ctx, append(ends, cancel) }
	if s.parentPipe {
		add(process.UntilEnd(c.Ctx, c.Stdin))
	}
	if s.timeout > 0 && s.findings != "" {
		add(context.WithTimeout(c.Ctx, s.timeout))
	}
	return func() {
		for _, cancel := range ends {
			cancel()
		}
	}
}

// kept returns a function that keeps what a review has shown.
func (c *invocation) kept(s *reviewFlags) func(review.Document, error) (review.Document, error) {
	return func(d review.Document, err error) (review.Document, error) {
		if d.Schema != "" {
			err = errors.Join(err, c.keep(s, &d))
		}
		return d, err
	}
}

// keep writes the files that --artifacts and --report name: the logs of the runs, and d.
func (c *invocation) keep(s *reviewFlags, d *review.Document) error {
	owner, err := process.ParseOwner(s.owner)
	if err == nil && s.artifacts != "" {
		err = d.KeepLogs(s.artifacts)
	}
	if err != nil || s.report == "" {
		return errors.Join(err, owner.Take(s.artifacts))
	}
	clean := d.Redacted(s.early.Text)
	data, err := clean.JSON()
	if err == nil {
		err = os.WriteFile(s.report, data, 0o600)
	}
	return errors.Join(err, owner.Take(s.artifacts, s.report))
}
