// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Review is a review of a pull request.
type Review struct {
	ID        int64
	Number    int // of the pull request
	Author    string
	Body      string
	State     string // "PENDING", "COMMENTED", "APPROVED" or "CHANGES_REQUESTED"
	Commit    string
	Submitted time.Time
}

// A ReviewComment is a comment on lines of a pull request's diff. Line and StartLine are those of
// Commit; GitHub carries a comment along as the head moves, or calls it outdated.
type ReviewComment struct {
	ID, Review       int64
	Number           int // of the pull request
	Author           string
	Body             string
	Path, Side       string
	Line, StartLine  int
	Commit           string
	Created, Updated time.Time
	Edits            int    // number of updates by requests
	ResolvedBy       string // login of who resolved the comment's thread; "" if it is not resolved
}

// Reviews returns the reviews of a pull request, oldest first.
func (s *Server) Reviews(number int) []Review {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Review
	for _, r := range s.home.reviews {
		if r.Number == number {
			list = append(list, *r)
		}
	}
	return list
}

// ReviewComments returns the comments of a pull request's reviews, oldest first.
func (s *Server) ReviewComments(number int) []ReviewComment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []ReviewComment
	for _, c := range s.home.remarks {
		if c.Number == number {
			list = append(list, *c)
		}
	}
	return list
}

// AddReviewComment adds a comment on a line of the head as if its author had written it on the
// web page, and returns its id.
func (s *Server) AddReviewComment(number int, author, body, path string, line int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	pr := s.home.prs[number]
	now := s.now()
	review := &Review{ID: s.nextID(), Number: number, Author: s.userOf(author).Login, State: "COMMENTED",
		Commit: pr.Head.SHA, Submitted: now}
	s.home.reviews = append(s.home.reviews, review)
	c := &ReviewComment{ID: s.nextID(), Review: review.ID, Number: number, Author: review.Author, Body: body,
		Path: path, Side: "RIGHT", Line: line, Commit: pr.Head.SHA, Created: now, Updated: now}
	s.home.remarks = append(s.home.remarks, c)
	return c.ID
}

// EditReviewComment changes a comment's text as if on the web page.
func (s *Server) EditReviewComment(id int64, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.home.remarks {
		if c.ID == id {
			c.Body, c.Updated = body, s.now()
		}
	}
}

// RemoveReviews removes the reviews of a pull request and their comments.
func (s *Server) RemoveReviews(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home.reviews = slices.DeleteFunc(s.home.reviews, func(r *Review) bool { return r.Number == number })
	s.home.remarks = slices.DeleteFunc(s.home.remarks, func(c *ReviewComment) bool { return c.Number == number })
}

// draft is a comment of a review that a request creates.
type draft struct {
	Path      string
	Body      string
	Position  *int
	Line      *int
	Side      string
	StartLine *int   `json:"start_line"`
	StartSide string `json:"start_side"`
}

var reviewStates = map[string]string{"": "PENDING", "COMMENT": "COMMENTED", "APPROVE": "APPROVED",
	"REQUEST_CHANGES": "CHANGES_REQUESTED"}

// createReview makes a review with all of its comments, or nothing.
func (s *Server) createReview(c *call) reply {
	pr := c.findPullRequest()
	if pr == nil {
		return notFound
	}
	var in struct {
		Body, Event string
		Commit      string `json:"commit_id"`
		Comments    []draft
	}
	if json.Unmarshal(c.body, &in) != nil {
		return errorReply(http.StatusBadRequest, "Problems parsing JSON")
	}
	if pr.Locked {
		return refuseLocked("review")
	}
	if in.Commit == "" {
		in.Commit = pr.Head.SHA
	}
	if why := s.refuseReview(c, pr, in.Event, in.Body, in.Commit); why != "" {
		return refuseDraft(why)
	}
	files := c.repo.filesAt(pr, in.Commit)
	for _, d := range in.Comments {
		if why := d.refusalReason(files); why != "" {
			return refuseDraft(why)
		}
	}
	return reply{body: s.reviewShape(c.repo, s.addReview(c, pr, in.Commit, in.Event, in.Body, in.Comments))}
}

// refuseReview returns why GitHub refuses a review as a whole.
func (s *Server) refuseReview(c *call, pr *PR, event, body, commit string) string {
	pending := slices.ContainsFunc(c.repo.reviews, func(r *Review) bool {
		return r.Number == pr.Number && r.Author == c.token.Login && r.State == "PENDING"
	})
	switch {
	case pending:
		return "User can only have one pending review per pull request"
	case event == "APPROVE" && c.token.Login == ActionsBot:
		return "GitHub Actions is not permitted to approve pull requests."
	case event != "" && event != "COMMENT" && c.token.Login == pr.Author:
		return "Can not approve or request changes on your own pull request"
	case (event == "COMMENT" || event == "REQUEST_CHANGES") && strings.TrimSpace(body) == "":
		return "Body can't be blank"
	case tooLong(body):
		return "Body is too long (maximum is 65536 characters)"
	case !c.repo.isPart(pr, commit):
		return "The commit is not part of the pull request"
	}
	return ""
}

func refuseDraft(why string) reply {
	r := errorReply(http.StatusUnprocessableEntity, "Unprocessable Entity")
	r.body.(obj)["errors"] = []any{why}
	return r
}

// isPart reports whether a commit is the head or was on the way to it.
func (r *repository) isPart(pr *PR, commit string) bool {
	if commit == pr.Head.SHA {
		return true
	}
	if r.Git == "" {
		return r.commits[commit]
	}
	_, inside := r.runGitCached("merge-base", "--is-ancestor", commit, pr.Head.SHA)
	_, before := r.runGitCached("merge-base", "--is-ancestor", commit, pr.Base.SHA)
	return inside && !before
}

// filesAt are the first files of the pull request's diff as of a commit.
func (r *repository) filesAt(pr *PR, commit string) []File {
	at := pr.clone()
	at.Head.SHA = commit
	files := r.changedFiles(&at)
	return files[:min(len(files), maxFiles)]
}

// refusalReason returns why GitHub refuses a comment, or "".
func (d draft) refusalReason(files []File) string {
	at := slices.IndexFunc(files, func(f File) bool { return f.Path == d.Path })
	switch {
	case strings.TrimSpace(d.Body) == "":
		return "Body can't be blank"
	case tooLong(d.Body):
		return "Body is too long (maximum is 65536 characters)"
	case d.Position != nil || d.Line == nil:
		return "The fake serves comments by line"
	case at < 0:
		return "Path could not be resolved"
	}
	lines := files[at].numberLines()
	hunk := lines[sideOrRight(d.Side)][*d.Line]
	switch {
	case hunk == 0:
		return "Pull request review thread line must be part of the diff"
	case d.StartLine == nil:
		return ""
	case sideOrRight(d.StartSide) == sideOrRight(d.Side) && *d.StartLine >= *d.Line:
		return "Pull request review thread start line must precede the end line."
	case lines[sideOrRight(d.StartSide)][*d.StartLine] != hunk:
		return "Pull request review thread start line must be part of the same hunk as the line."
	}
	return ""
}

func sideOrRight(s string) string {
	if s == "" {
		return "RIGHT"
	}
	return s
}

func (s *Server) addReview(c *call, pr *PR, commit, event, body string, comments []draft) *Review {
	now := s.now()
	review := &Review{ID: s.nextID(), Number: pr.Number, Author: c.token.Login, Body: body, State: reviewStates[event],
		Commit: commit}
	if event != "" {
		review.Submitted = now
	}
	c.repo.reviews = append(c.repo.reviews, review)
	for _, d := range comments {
		remark := &ReviewComment{ID: s.nextID(), Review: review.ID, Number: pr.Number, Author: review.Author,
			Body: d.Body,
			Path: d.Path, Side: sideOrRight(d.Side), Line: *d.Line, Commit: commit, Created: now, Updated: now}
		if d.StartLine != nil {
			remark.StartLine = *d.StartLine
		}
		c.repo.remarks = append(c.repo.remarks, remark)
	}
	return review
}

// listReviewComments lists by ascending id. Those of a pending review are not listed.
func (s *Server) listReviewComments(c *call) reply {
	pr := c.findPullRequest()
	if pr == nil {
		return notFound
	}
	if q := c.r.URL.Query(); q.Has("sort") || q.Has("direction") || q.Has("since") {
		return errorReply(http.StatusUnprocessableEntity, "The fake serves comments by ascending id")
	}
	var list []any
	for _, remark := range c.repo.remarks {
		if remark.Number == pr.Number && !c.repo.isPending(remark.Review) {
			list = append(list, s.remarkShape(c.repo, remark))
		}
	}
	return reply{list: list, listed: true}
}

func (r *repository) isPending(review int64) bool {
	return slices.ContainsFunc(r.reviews, func(x *Review) bool { return x.ID == review && x.State == "PENDING" })
}

func (c *call) findReviewComment() *ReviewComment {
	id := c.pathNumber("comment_id")
	for _, remark := range c.repo.remarks {
		if remark.ID == id {
			return remark
		}
	}
	return nil
}

func (s *Server) updateReviewComment(c *call) reply {
	remark := c.findReviewComment()
	if remark == nil {
		return notFound
	}
	body, bad := bodyOf(c.body)
	if bad != nil {
		return *bad
	}
	remark.Body, remark.Updated = body, s.now()
	remark.Edits++
	return reply{body: s.remarkShape(c.repo, remark)}
}

func (s *Server) deleteReviewComment(c *call) reply {
	remark := c.findReviewComment()
	if remark == nil {
		return notFound
	}
	c.repo.remarks = slices.DeleteFunc(c.repo.remarks, func(x *ReviewComment) bool { return x.ID == remark.ID })
	return reply{status: http.StatusNoContent}
}

func (s *Server) reviewShape(r *repository, review *Review) obj {
	page := s.pageURL(r, "/pull/%d#pullrequestreview-%d", review.Number, review.ID)
	v := obj{
		"id": review.ID, "node_id": fmt.Sprint("PRR_", review.ID), "user": s.userShape(review.Author), "body": review.Body, "state": review.State,
		"commit_id": review.Commit, "html_url": page, "pull_request_url": s.apiURL(r, "/pulls/%d", review.Number),
		"author_association": s.associationOf(review.Author),
		"_links":             obj{"html": obj{"href": page}, "pull_request": obj{"href": s.apiURL(r, "/pulls/%d", review.Number)}},
	}
	if !review.Submitted.IsZero() {
		v["submitted_at"] = formatTime(review.Submitted)
	}
	return v
}

// remarkShape has the lines at the pull request's head: null for a comment that is outdated.
func (s *Server) remarkShape(r *repository, c *ReviewComment) obj {
	page, api, pull := s.pageURL(r, "/pull/%d#discussion_r%d", c.Number, c.ID), s.apiURL(r, "/pulls/comments/%d", c.ID),
		s.apiURL(r, "/pulls/%d", c.Number)
	line, start := r.currentLines(c)
	v := obj{
		"id": c.ID, "node_id": fmt.Sprint("PRRC_", c.ID), "pull_request_review_id": c.Review, "user": s.userShape(c.Author), "body": c.Body,
		"path": c.Path, "side": c.Side, "line": orNil(line), "original_line": c.Line, "start_line": orNil(start), "original_start_line": orNil(c.StartLine),
		"start_side": nil, "position": orNil(line), "original_position": 1, "diff_hunk": "@@ -1 +1 @@", "subject_type": "line",
		"commit_id": r.prs[c.Number].Head.SHA, "original_commit_id": c.Commit, "created_at": formatTime(c.Created), "updated_at": formatTime(c.Updated),
		"url": api, "html_url": page, "pull_request_url": pull, "author_association": s.associationOf(c.Author),
		"_links": obj{"self": obj{"href": api}, "html": obj{"href": page}, "pull_request": obj{"href": pull}},
	}
	if c.StartLine > 0 {
		v["start_side"] = c.Side
	}
	return v
}

// currentLines returns where a comment is now: 0 if it is outdated.
func (r *repository) currentLines(c *ReviewComment) (line, start int) {
	pr := r.prs[c.Number]
	line, start = c.Line, c.StartLine
	if c.Side == "RIGHT" && pr.Head.SHA != c.Commit && r.Git != "" {
		line = r.carryLine(c.Path, c.Line, c.Commit, pr.Head.SHA)
		if start > 0 {
			start = r.carryLine(c.Path, start, c.Commit, pr.Head.SHA)
		}
	}
	d := draft{Path: c.Path, Body: "x", Line: &line, Side: c.Side}
	if line == 0 || c.StartLine > 0 && start == 0 || d.refusalReason(r.filesAt(pr, pr.Head.SHA)) != "" {
		return 0, 0
	}
	return line, start
}
