// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxRefText bounds a branch's name in a Context, in displayed characters.
const maxRefText = 255

// contextOf returns what rules get as input.context about t: from the event, and of the pull request
// from the API. A job that reports another workflow's run describes that run.
func (b *Base) contextOf(ctx context.Context, t Task) (proposal.Context, error) {
	j, q, pr := b.job, t.Request, t.PR
	c := proposal.Context{Known: true, Repository: j.runner.Repository, Visibility: j.event.Repository.Visibility,
		DefaultBranch: j.event.Repository.DefaultBranch, BaseRef: text.Inline(q.BaseRef, maxRefText),
		HeadRef: text.Inline(q.HeadRef, maxRefText), Event: j.event.Name, PR: q.PR, Fork: t.Fork != "",
		Requester: j.event.SenderLogin, Started: points.FormatStarted(j.started.Add(j.gh.ClockOffset()))}
	switch {
	case j.event.Run != nil:
		c.Event, c.Requester, c.Started = j.ran.Event, j.ran.Actor.Login, points.FormatStarted(j.ran.Started)
	case j.event.Comment != nil:
		c.Requester = j.event.Comment.AuthorLogin
	case q.HeadRef == "":
		c.HeadRef = text.Inline(strings.TrimPrefix(j.event.Ref, "refs/heads/"), maxRefText)
	}
	configured, err := b.configuration(ctx)
	if err != nil {
		return c, err
	}
	c.Image = environment.ParseContextImage(configured.rootfs)
	if q.PR == 0 || pr.Number != q.PR {
		return c, nil
	}
	c.Draft, c.Labels, c.Author, c.Association = pr.Draft, pr.Labels, pr.Author.Login, pr.Association
	layers, err := b.policies(ctx)
	if err == nil && slices.ContainsFunc(layers, func(l layer) bool { return l.policy.ReadsContext("changed") }) {
		c.Changed, err = j.changedFiles(ctx, q)
	}
	return c, err
}

// changedFiles lists what the pull request changes. This takes requests, so it is called only if
// rules read it. The list is complete only if the pull request was still at q's commit afterwards.
func (j *Job) changedFiles(ctx context.Context, q Request) (c proposal.ContextChanged, err error) {
	files, complete, err := j.gh.Files(ctx, q.PR)
	if err != nil {
		return c, err
	}
	pr, err := j.gh.PullRequest(ctx, q.PR)
	if err != nil || pr.Head.SHA != q.Head {
		return c, err
	}
	c.Complete = complete
	for _, f := range files {
		for _, path := range []string{f.Path, f.Previous} {
			switch {
			case path == "":
			case len(path) > proposal.MaxContextText:
				c.Complete = false
			default:
				c.Paths = append(c.Paths, path)
			}
		}
	}
	slices.Sort(c.Paths)
	if c.Paths = slices.Compact(c.Paths); len(c.Paths) > proposal.MaxContextPaths {
		c.Paths, c.Complete = c.Paths[:proposal.MaxContextPaths], false
	}
	return c, nil
}
