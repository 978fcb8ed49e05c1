// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/comment"
)

// answers are what a step has asked the API and does not ask again: a token has 1,000 requests an
// hour, for all jobs of a repository. What can change while a step works is not among them, except for
// the tip of the default branch, which is one and the same for all that a step decides.
type answers struct {
	started     bool // account and tip were asked for
	account     github.Author
	tip         github.Branch
	permissions map[string]github.Permission // by login
	state       *comment.State               // of the comment that is judged against; nil before
	artifacts   map[int64][]github.Artifact  // by run: those of jobs that ended before this step began
}

// start asks for the account and the tip in one request. If that fails, each is asked for alone.
func (j *Job) start(ctx context.Context) {
	if j.known.started {
		return
	}
	j.known.started = true
	if account, tip, err := j.gh.ReadAccountAndBranch(ctx); err == nil {
		j.known.account, j.known.tip = account, tip
	}
}

// account is the account that the token writes as.
func (j *Job) account(ctx context.Context) (_ github.Author, err error) {
	if j.start(ctx); j.known.account == (github.Author{}) {
		j.known.account, err = j.gh.Author(ctx)
	}
	return j.known.account, err
}

// defaultBranch is the default branch, as it was when the step first asked.
func (j *Job) defaultBranch(ctx context.Context) (_ github.Branch, err error) {
	if j.start(ctx); j.known.tip == (github.Branch{}) {
		j.known.tip, err = j.gh.DefaultBranch(ctx)
	}
	return j.known.tip, err
}

// permission is what login may do, as it was when the step first asked.
func (j *Job) permission(ctx context.Context, login string) (github.Permission, error) {
	if p, there := j.known.permissions[login]; there {
		return p, nil
	}
	p, err := j.gh.Permission(ctx, login)
	if err != nil {
		return p, err
	}
	if j.known.permissions == nil {
		j.known.permissions = map[string]github.Permission{}
	}
	j.known.permissions[login] = p
	return p, nil
}

// artifactsOfRun lists the artifacts of a run, as they were when the step first asked.
func (j *Job) artifactsOfRun(ctx context.Context, run int64) ([]github.Artifact, error) {
	if list, there := j.known.artifacts[run]; there {
		return list, nil
	}
	list, err := j.gh.Artifacts(ctx, run)
	if err != nil {
		return nil, err
	}
	if j.known.artifacts == nil {
		j.known.artifacts = map[int64][]github.Artifact{}
	}
	j.known.artifacts[run] = list
	return list, nil
}
