// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// maxFiles is the number of files that GitHub lists for a pull request.
const maxFiles = 3000

func (c *call) findPullRequest() *PR { return c.repo.prs[int(c.pathNumber("pull_number"))] }

func (s *Server) getPull(c *call) reply {
	pr := c.findPullRequest()
	if pr == nil {
		return notFound
	}
	if accept := c.r.Header.Get("Accept"); strings.Contains(accept, "diff") || strings.Contains(accept, "patch") {
		return reply{raw: []byte(c.repo.pullRequestDiff(pr)),
			header: http.Header{"Content-Type": {"application/vnd.github.diff; charset=utf-8"}}}
	}
	return reply{body: s.pullShape(c.repo, pr, true)}
}

// listPulls filters as GitHub does: a head without an owner is ignored.
func (s *Server) listPulls(c *call) reply {
	query := c.r.URL.Query()
	state := cmp.Or(query.Get("state"), "open")
	owner, branch, headed := strings.Cut(query.Get("head"), ":")
	var list []any
	for _, number := range slices.Backward(c.repo.pullNumbers()) {
		pr := c.repo.prs[number]
		from, _, _ := strings.Cut(pr.Head.Repository, "/")
		if from == "-" {
			from = pr.Author
		}
		switch {
		case state != "all" && state != pr.State,
			query.Get("base") != "" && query.Get("base") != pr.Base.Ref,
			headed && (!strings.EqualFold(owner, from) || branch != pr.Head.Ref):
			continue
		}
		list = append(list, s.pullShape(c.repo, pr, false))
	}
	return reply{list: list, listed: true}
}

func (r *repository) pullNumbers() []int {
	var list []int
	for n := range r.prs {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func (s *Server) listFiles(c *call) reply {
	pr := c.findPullRequest()
	if pr == nil {
		return notFound
	}
	files := c.repo.changedFiles(pr)
	var list []any
	for _, f := range files[:min(len(files), maxFiles)] {
		v := obj{"filename": f.Path, "status": cmp.Or(f.Status, "modified"), "sha": CommitID(f.Path),
			"additions": strings.Count(f.Patch, "\n+"), "deletions": strings.Count(f.Patch, "\n-"),
			"changes": strings.Count(f.Patch, "\n+") + strings.Count(f.Patch, "\n-")}
		if f.Patch != "" {
			v["patch"] = f.Patch
		}
		if f.Previous != "" {
			v["previous_filename"] = f.Previous
		}
		list = append(list, v)
	}
	return reply{list: list, listed: true}
}

func (s *Server) listPullCommits(c *call) reply {
	pr := c.findPullRequest()
	if pr == nil {
		return notFound
	}
	return reply{list: []any{s.commitShape(c.repo, pr.Head.SHA)}, listed: true}
}
