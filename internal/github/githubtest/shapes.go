// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"strings"
)

func (s *Server) userShape(login string) obj {
	u := s.userOf(login)
	page := s.options.ServerURL + "/" + strings.TrimSuffix(u.Login, "[bot]")
	if u.Type == "Bot" {
		page = s.options.ServerURL + "/apps/" + strings.TrimSuffix(u.Login, "[bot]")
	}
	return obj{"login": u.Login, "id": u.ID, "type": u.Type, "html_url": page, "url": s.URL + "/users/" + u.Login}
}

func (s *Server) repositoryShape(r *repository) obj {
	owner, name, _ := strings.Cut(r.Name, "/")
	return obj{
		"id": r.ID, "name": name, "full_name": r.Name, "private": r.Private, "fork": r.Fork,
		"owner": s.userShape(owner), "default_branch": r.defaultBranch(),
		"url": s.apiURL(r, ""), "html_url": s.pageURL(r, ""), "clone_url": s.pageURL(r, ".git"),
	}
}

// pullShape is a pull request as in lists or, if full is set, as in a single response.
func (s *Server) pullShape(r *repository, pr *PR, full bool) obj {
	number := pr.Number
	v := obj{
		"id": int64(number) + 279147436, "number": number, "state": pr.State, "locked": pr.Locked, "draft": pr.Draft,
		"title": pr.Title, "body": pr.Body, "user": s.userShape(pr.Author),
		"url": s.apiURL(r, "/pulls/%d", number), "html_url": s.pageURL(r, "/pull/%d", number),
		"issue_url": s.apiURL(r, "/issues/%d", number), "comments_url": s.apiURL(r, "/issues/%d/comments", number),
		"head": s.refShape(pr.Head, pr.Author), "base": s.refShape(pr.Base, ""), "labels": labelShapes(pr.Labels),
		"author_association": s.associationOf(pr.Author), "auto_merge": nil,
	}
	if pr.State == "closed" {
		v["closed_at"] = formatTime(s.now())
	}
	if pr.Merged {
		v["merged_at"], v["merge_commit_sha"] = formatTime(s.now()), CommitID("merge of "+pr.Head.SHA)
	}
	if full {
		v["merged"], v["changed_files"], v["comments"] = pr.Merged, len(pr.Files), s.countComments(r, number)
		v["mergeable_state"] = "unknown"
	}
	return v
}

// refShape is one side of a pull request. If a fork was deleted, only the user remains.
func (s *Server) refShape(ref Ref, author string) obj {
	if ref.Repository == "-" {
		return obj{"label": author + ":" + ref.Ref, "ref": ref.Ref, "sha": ref.SHA, "repo": nil,
			"user": s.userShape(author)}
	}
	owner, _, _ := strings.Cut(ref.Repository, "/")
	return obj{
		"label": owner + ":" + ref.Ref, "ref": ref.Ref, "sha": ref.SHA,
		"repo": s.repositoryShape(s.findOrAddRepository(ref.Repository)), "user": s.userShape(owner),
	}
}

func labelShapes(labels []string) []any {
	list := []any{}
	for i, l := range labels {
		list = append(list, obj{"id": i + 1, "name": l, "color": "ededed", "default": false, "description": ""})
	}
	return list
}

func (s *Server) countComments(r *repository, number int) (n int) {
	for _, c := range r.comments {
		if c.Number == number {
			n++
		}
	}
	return n
}

// associationOf is what GitHub shows beside a name. It is not a permission.
func (s *Server) associationOf(login string) string {
	owner, _, _ := strings.Cut(s.home.Name, "/")
	switch role := s.home.roles[strings.ToLower(login)]; {
	case strings.EqualFold(login, owner):
		return "OWNER"
	case role == "admin", role == "maintain", role == "write", role == "triage":
		return "COLLABORATOR"
	}
	return "NONE"
}

func (s *Server) commentShape(r *repository, c *Comment) obj {
	side := "issues"
	if r.prs[c.Number] != nil {
		side = "pull"
	}
	return obj{
		"id": c.ID, "body": c.Body, "user": s.userShape(c.Author), "author_association": s.associationOf(c.Author),
		"created_at": formatTime(c.Created), "updated_at": formatTime(c.Updated),
		"url": s.apiURL(r, "/issues/comments/%d", c.ID), "issue_url": s.apiURL(r, "/issues/%d", c.Number),
		"html_url":                 s.pageURL(r, "/%s/%d#issuecomment-%d", side, c.Number, c.ID),
		"performed_via_github_app": s.appShape(c.Author),
	}
}

func (s *Server) reactionShape(x *Reaction) obj {
	return obj{"id": x.ID, "content": x.Content, "user": s.userShape(x.Author), "created_at": formatTime(x.Created)}
}

func (s *Server) runShape(r *repository, run *Run) obj {
	requests := []any{}
	for _, n := range run.PullRequests {
		if pr := r.prs[n]; pr != nil {
			requests = append(requests, obj{
				"id": int64(n) + 279147436, "number": n, "url": s.apiURL(r, "/pulls/%d", n),
				"head": obj{"ref": pr.Head.Ref, "sha": pr.Head.SHA, "repo": s.minimalRepository(pr.Head.Repository)},
				"base": obj{"ref": pr.Base.Ref, "sha": pr.Base.SHA, "repo": s.minimalRepository(pr.Base.Repository)},
			})
		}
	}
	head, started := s.findOrAddRepository(run.HeadRepository), run.Started
	if started.IsZero() {
		started = run.Created
	}
	return obj{
		"id": run.ID, "name": run.Name, "run_number": run.Number, "run_attempt": run.Attempt, "event": run.Event,
		"status": run.Status, "conclusion": orNil(run.Conclusion), "head_sha": run.HeadSHA, "head_branch": run.HeadBranch,
		"path": run.Path, "display_title": run.Name, "actor": s.userShape(run.Actor), "triggering_actor": s.userShape(run.Actor),
		"head_repository": s.repositoryShape(head), "repository": s.repositoryShape(r), "head_repository_id": head.ID,
		"created_at": formatTime(run.Created), "updated_at": formatTime(run.Created), "run_started_at": formatTime(started),
		"pull_requests": requests, "url": s.apiURL(r, "/actions/runs/%d", run.ID), "html_url": s.pageURL(r, "/actions/runs/%d", run.ID),
		"artifacts_url": s.apiURL(r, "/actions/runs/%d/artifacts", run.ID), "workflow_id": 30433642,
	}
}

func (s *Server) minimalRepository(name string) obj {
	if name == "-" {
		name = s.home.Name // the description does not allow a deleted fork here
	}
	r := s.findOrAddRepository(name)
	_, short, _ := strings.Cut(r.Name, "/")
	return obj{"id": r.ID, "name": short, "url": s.apiURL(r, "")}
}

func (s *Server) artifactShape(r *repository, a *Artifact) obj {
	size := a.Size
	if size == 0 {
		size = int64(len(a.Data))
	}
	v := obj{
		"id": a.ID, "name": a.Name, "size_in_bytes": size, "expired": a.Expired,
		"url": s.apiURL(r, "/actions/artifacts/%d", a.ID), "archive_download_url": s.apiURL(r, "/actions/artifacts/%d/zip", a.ID),
		"created_at": formatTime(a.Created), "updated_at": formatTime(a.Created), "expires_at": formatTime(a.Created.AddDate(0, 0, 7)),
	}
	if a.Digest != "" {
		v["digest"] = a.Digest
	}
	for _, run := range r.runs {
		if run.ID == a.Run {
			v["workflow_run"] = obj{"id": run.ID, "repository_id": r.ID,
				"head_repository_id": s.findOrAddRepository(run.HeadRepository).ID,
				"head_branch":        run.HeadBranch, "head_sha": run.HeadSHA}
		}
	}
	return v
}
