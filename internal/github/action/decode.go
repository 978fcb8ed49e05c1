// SPDX-License-Identifier: Apache-2.0

package action

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// wantedPaths are the values that are used, by event. An object on the path to such
// a value is included.
var wantedPaths = map[string]map[string]bool{
	eventPullRequest: addCommonPaths("action", "number", "pull_request", "pull_request.number", "pull_request.state",
		"pull_request.draft",
		"pull_request.locked", "pull_request.user", "pull_request.user.id", "pull_request.user.login",
		"pull_request.head", "pull_request.head.sha", "pull_request.head.ref",
		"pull_request.head.repo", "pull_request.head.repo.id", "pull_request.head.repo.full_name",
		"pull_request.base", "pull_request.base.sha", "pull_request.base.ref",
		"pull_request.base.repo", "pull_request.base.repo.id", "pull_request.base.repo.full_name"),
	eventWorkflowRun: addCommonPaths("action", "workflow_run", "workflow_run.id", "workflow_run.run_number",
		"workflow_run.run_attempt",
		"workflow_run.event", "workflow_run.head_sha", "workflow_run.head_branch", "workflow_run.head_repository",
		"workflow_run.head_repository.id", "workflow_run.head_repository.full_name", "workflow_run.conclusion",
		"workflow_run.path", "workflow_run.name", "workflow_run.actor", "workflow_run.actor.id",
		"workflow_run.repository", "workflow_run.repository.id", "workflow_run.repository.full_name"),
	eventIssueComment: addCommonPaths("action", "issue", "issue.number", "issue.pull_request", "comment", "comment.id",
		"comment.body",
		"comment.user", "comment.user.id", "comment.user.login", "comment.user.type",
		"comment.html_url", "comment.created_at", "comment.updated_at"),
	eventReview: addCommonPaths("action", "pull_request", "pull_request.number", "review", "review.id", "review.body",
		"review.user", "review.user.id",
		"review.user.login", "review.user.type", "review.html_url", "review.submitted_at"),
	eventReviewComment: addCommonPaths("action", "pull_request", "pull_request.number", "comment", "comment.id",
		"comment.body",
		"comment.user", "comment.user.id", "comment.user.login", "comment.user.type",
		"comment.html_url", "comment.created_at", "comment.updated_at"),
	eventMergeGroup: addCommonPaths("action", "merge_group", "merge_group.head_sha", "merge_group.head_ref",
		"merge_group.base_sha", "merge_group.base_ref"),
	eventCheckRun: addCommonPaths("action", "check_run", "check_run.id", "requested_action",
		"requested_action.identifier"),
	eventWorkflowDispatch: addCommonPaths("ref", "inputs"),
	eventPush:             addCommonPaths("ref"),
}

// addCommonPaths adds the paths that every event has.
func addCommonPaths(own ...string) map[string]bool {
	set := map[string]bool{}
	for _, path := range append(own, "repository", "repository.id", "repository.full_name", "repository.default_branch",
		"repository.visibility", "sender", "sender.id", "sender.login", "sender.type") {
		set[path] = true
	}
	return set
}

func (f fields) pullRequest(e *Event) {
	f.requireObject("pull_request")
	e.Action, e.Number = f.readMatching("action", eventName, "an action's name"), f.readInt("number")
	pr := &PullRequest{
		Number: f.readInt("pull_request.number"), State: f.readState("pull_request.state"),
		Draft:  !f.isNullOrMissing("pull_request.draft") && f.readBool("pull_request.draft"),
		Locked: !f.isNullOrMissing("pull_request.locked") && f.readBool("pull_request.locked"),
		Head:   f.readRef("pull_request.head"), Base: f.readRef("pull_request.base"),
	}
	if !f.isNullOrMissing("pull_request.user") {
		pr.AuthorID, pr.AuthorLogin = f.readID("pull_request.user.id"), f.readLogin("pull_request.user.login")
	}
	if pr.Number != e.Number {
		f.refuseValue("pull_request.number", "the same as number")
	}
	if pr.Base.RepositoryID != e.Repository.ID || pr.Base.Repository != e.Repository.Name {
		f.refuseValue("pull_request.base.repo.full_name", "the repository of the event")
	}
	pr.Fork = pr.Head.RepositoryID != pr.Base.RepositoryID
	e.PR = pr
}

func (f fields) readState(path string) string {
	s := f.readText(path, 1, 40)
	if s != "open" && s != "closed" {
		f.refuseValue(path, "open or closed")
	}
	return s
}

// readRef reads one side of a pull request; its repository may have been deleted.
func (f fields) readRef(path string) Ref {
	f.requireObject(path)
	r := Ref{SHA: f.readSHA(path + ".sha"), Ref: f.readBranch(path + ".ref")}
	if !f.isNullOrMissing(path + ".repo") {
		r.Repository, r.RepositoryID = f.repositoryName(path+".repo.full_name"), f.readID(path+".repo.id")
	}
	return r
}

func (f fields) workflowRun(e *Event) {
	f.requireObject("workflow_run")
	e.Action = f.readMatching("action", eventName, "an action's name")
	run := &WorkflowRun{
		ID: f.readID("workflow_run.id"), Number: f.readInt("workflow_run.run_number"),
		Attempt:    f.readInt("workflow_run.run_attempt"),
		Event:      f.readMatching("workflow_run.event", eventName, "an event's name"),
		HeadSHA:    f.readSHA("workflow_run.head_sha"),
		Conclusion: f.readOptionalText("workflow_run.conclusion", 40),
		Path:       f.readOptionalText("workflow_run.path", maxRef),
		Name:       f.readOptionalText("workflow_run.name", 1000),
	}
	if !f.isNullOrMissing("workflow_run.head_branch") {
		run.HeadBranch = f.readBranch("workflow_run.head_branch")
	}
	if !f.isNullOrMissing("workflow_run.head_repository") {
		run.HeadRepository = f.repositoryName("workflow_run.head_repository.full_name")
		run.HeadRepositoryID = f.readID("workflow_run.head_repository.id")
	}
	if !f.isNullOrMissing("workflow_run.actor") {
		run.ActorID = f.readID("workflow_run.actor.id")
	}
	if f.readID("workflow_run.repository.id") != e.Repository.ID {
		f.refuseValue("workflow_run.repository.id", "that of the event's repository")
	}
	e.Run = run
}

func (f fields) readCommentEvent(e *Event) {
	f.requireObject("issue")
	e.Action, e.Number = f.readMatching("action", eventName, "an action's name"), f.readInt("issue.number")
	if e.OnIssue = f.isNullOrMissing("issue.pull_request"); !e.OnIssue {
		f.requireObject("issue.pull_request")
	}
	e.Comment = f.readComment("comment", "created_at", "updated_at")
}

func (f fields) reviewComment(e *Event) {
	f.requireObject("pull_request")
	e.Action, e.Number = f.readMatching("action", eventName, "an action's name"), f.readInt("pull_request.number")
	e.Comment = f.readComment("comment", "created_at", "updated_at")
}

// readReviewEvent reads a review, which may have no text of its own.
func (f fields) readReviewEvent(e *Event) {
	f.requireObject("pull_request")
	e.Action, e.Number = f.readMatching("action", eventName, "an action's name"), f.readInt("pull_request.number")
	if f.isNullOrMissing("review.body") {
		f.values["review.body"] = value{kind: str}
	}
	e.Comment = f.readComment("review", "submitted_at", "submitted_at")
}

// readComment reads a text that a user wrote.
func (f fields) readComment(path, created, updated string) *Comment {
	f.requireObject(path)
	c := &Comment{
		ID: f.readID(path + ".id"), Body: f.readBody(path + ".body"), URL: f.readURL(path + ".html_url"),
		Created: f.readTime(path + "." + created), Updated: f.readTime(path + "." + updated),
	}
	if !f.isNullOrMissing(path + ".user") {
		c.AuthorID, c.AuthorLogin = f.readID(path+".user.id"), f.readLogin(path+".user.login")
		c.AuthorType = f.readText(path+".user.type", 1, 40)
	}
	return c
}

func (f fields) mergeGroup(e *Event) {
	f.requireObject("merge_group")
	e.Action = f.readMatching("action", eventName, "an action's name")
	e.Group = &MergeGroup{
		Head: Ref{SHA: f.readSHA("merge_group.head_sha"), Ref: f.fullRef("merge_group.head_ref")},
		Base: Ref{SHA: f.readSHA("merge_group.base_sha"), Ref: f.fullRef("merge_group.base_ref")},
	}
}

// checkRun reads a person's request to run the plan of a check run again. It is treated as the
// command rerun in a comment of that person; no text of the payload is part of it.
func (f fields) checkRun(e *Event) {
	f.requireObject("check_run")
	e.Action, e.Check = f.readMatching("action", eventName, "an action's name"), &Check{ID: f.readID("check_run.id")}
	identifier := ""
	if !f.isNullOrMissing("requested_action") {
		f.requireObject("requested_action")
		identifier = f.readOptionalText("requested_action.identifier", 100)
	}
	if e.Action == "rerequested" || e.Action == "requested_action" && identifier == RerunAction {
		e.Comment = &Comment{ID: e.Check.ID, Body: "/fumehood rerun", AuthorID: e.SenderID, AuthorLogin: e.SenderLogin,
			AuthorType: e.SenderType}
	}
}

func (f fields) readBody(path string) string {
	v := f.values[path]
	if v.kind != str || len(v.text) > maxBody {
		f.refuseValue(path, "a comment's text")
	}
	return v.text
}

func (f fields) readURL(path string) string {
	s := f.readText(path, 1, maxRef)
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.ContainsAny(s, " <>\"'`\\") {
		f.refuseValue(path, "an address")
	}
	return s
}

// readDispatchEvent reads workflow_dispatch. Its inputs come from a user with write access to
// the repository. GitHub's page sends text; the API also sends numbers and booleans.
func (f fields) readDispatchEvent(e *Event) {
	e.Ref, e.Inputs = f.readText("ref", 1, maxRef), map[string]string{}
	if f.isNullOrMissing("inputs") {
		return
	}
	f.requireObject("inputs")
	for _, path := range slices.Sorted(maps.Keys(f.values)) {
		name, ok := strings.CutPrefix(path, "inputs.")
		if !ok {
			continue
		}
		v := f.values[path]
		if v.kind != null && v.kind != str && v.kind != number && v.kind != boolean || len(v.text) > maxInputed ||
			!utf8.ValidString(v.text) {
			f.refuseValue(path, "text, a number, true or false")
		}
		e.Inputs[name] = v.text
	}
	if len(e.Inputs) > maxInputs {
		f.refuseValue("inputs", "an object of at most 50 names")
	}
	if pr := strings.TrimSpace(e.Inputs["pr"]); pr != "" {
		n, err := strconv.ParseInt(pr, 10, 32)
		if err != nil || !positive.MatchString(pr) {
			f.refuseUnusable("event.input", "inputs.pr",
				"give the pull request's number alone, for example 7, or nothing")
		}
		e.Number = int(n)
	}
}
