// SPDX-License-Identifier: Apache-2.0

// Package policyrepo reads policy at commits of a repository on this machine, as package source of
// policy asks for it.
package policyrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A localRepository is a repository on this machine.
type localRepository struct{ *checkout.Local }

// OpenDirectory returns a function that opens the repository of directory, "." if empty.
func OpenDirectory(directory string) func(context.Context) (source.Repository, error) {
	return func(ctx context.Context) (source.Repository, error) {
		l, err := checkout.OpenLocal(ctx, cmp.Or(directory, "."))
		if err != nil {
			return nil, err
		}
		return localRepository{l}, nil
	}
}

// ReadDir implements source.Repository.
func (r localRepository) ReadDir(
	ctx context.Context, commit, path string, wanted func(string) bool,
) ([]policy.File, []string, error) {
	contents, left, err := r.Local.ReadDir(ctx, commit, path, wanted,
		checkout.Limits{Files: 10_000, File: policy.MaxTotal, Bytes: policy.MaxTotal})
	var absent *checkout.NotFound
	if errors.As(err, &absent) {
		err = &proposal.StopError{Code: "policy.missing",
			Message: fmt.Sprintf("commit %.12s has no directory %q", commit, path),
			Hint:    "check the path from the top of the repository; what a pull request adds exists after its merge"}
	}
	var files []policy.File
	for _, c := range contents {
		files = append(files, policy.File{Name: c.Path, Content: c.Bytes})
	}
	var unfit []string
	for _, l := range left {
		unfit = append(unfit, l.String())
	}
	return files, unfit, err
}
