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
	eventPullRequest: paths("action", "number", "pull_request", "pull_request.number", "pull_request.state", "pull_request.draft",
		"pull_request.locked", "pull_request.user", "pull_request.user.id", "pull_request.user.login",
		"pull_request.head", "pull_request.head.sha", "pull_request.head.ref",
		"pull_request.head.repo", "pull_request.head.repo.id", "pull_request.head.repo.full_name",
		"pull_request.base", "pull_request.base.sha", "pull_request.base.ref",
		"pull_request.base.repo", "pull_request.base.repo.id", "pull_request.base.repo.full_name"),
	eventWorkflowRun: paths("action", "workflow_run", "workflow_run.id", "workflow_run.run_number", "workflow_run.run_attempt",
		"workflow_run.event", "workflow_run.head_sha", "workflow_run.head_branch", "workflow_run.head_repository",
		"workflow_run.head_repository.id", "workflow_run.head_repository.full_name", "workflow_run.conclusion",
		"workflow_run.path", "workflow_run.name", "workflow_run.actor", "workflow_run.actor.id",
		"workflow_run.repository", "workflow_run.repository.id", "workflow_run.repository.full_name"),
	eventIssueComment: paths("action", "issue", "issue.number", "issue.pull_request", "comment", "comment.id", "comment.body",
		"comment.user", "comment.user.id", "comment.user.login", "comment.user.type",
		"comment.html_url", "comment.created_at", "comment.updated_at"),
	eventReview: paths("action", "pull_request", "pull_request.number", "review", "review.id", "review.body", "review.user", "review.user.id",
		"review.user.login", "review.user.type", "review.html_url", "review.submitted_at"),
	eventReviewComment: paths("action", "pull_request", "pull_request.number", "comment", "comment.id", "comment.body",
		"comment.user", "comment.user.id", "comment.user.login", "comment.user.type",
		"comment.html_url", "comment.created_at", "comment.updated_at"),
	eventMergeGroup:       paths("action", "merge_group", "merge_group.head_sha", "merge_group.head_ref", "merge_group.base_sha", "merge_group.base_ref"),
	eventCheckRun:         paths("action", "check_run", "check_run.id", "requested_action", "requested_action.identifier"),
	eventWorkflowDispatch: paths("ref", "inputs"),
	eventPush:             paths("ref"),
}

// paths adds the paths that every event has.
func paths(own ...string) map[string]bool {
	set := map[string]bool{}
	for _, path := range append(own, "repository", "repository.id", "repository.full_name", "repository.default_branch",
		"sender", "sender.id", "sender.login", "sender.type") {
		set[path] = true
	}
	return set
}

func (f fields) pullRequest(e *Event) {
	f.object("pull_request")
	e.Action, e.Number = f.match("action", eventName, "an action's name"), f.int("number")
	pr := &PullRequest{
		Number: f.int("pull_request.number"), State: f.state("pull_request.state"),
		Draft:  !f.gone("pull_request.draft") && f.bool("pull_request.draft"),
		Locked: !f.gone("pull_request.locked") && f.bool("pull_request.locked"),
		Head:   f.ref("pull_request.head"), Base: f.ref("pull_request.base"),
	}
	if !f.gone("pull_request.user") {
		pr.AuthorID, pr.AuthorLogin = f.id("pull_request.user.id"), f.login("pull_request.user.login")
	}
	if pr.Number != e.Number {
		f.refuse("pull_request.number", "the same as number")
	}
	if pr.Base.RepositoryID != e.Repository.ID || pr.Base.Repository != e.Repository.Name {
		f.refuse("pull_request.base.repo.full_name", "the repository of the event")
	}
	pr.Fork = pr.Head.RepositoryID != pr.Base.RepositoryID
	e.PR = pr
}

func (f fields) state(path string) string {
	s := f.text(path, 1, 40)
	if s != "open" && s != "closed" {
		f.refuse(path, "open or closed")
	}
	return s
}

// ref reads one side of a pull request; its repository may have been deleted.
func (f fields) ref(path string) Ref {
	f.object(path)
	r := Ref{SHA: f.sha(path + ".sha"), Ref: f.branch(path + ".ref")}
	if !f.gone(path + ".repo") {
		r.Repository, r.RepositoryID = f.repositoryName(path+".repo.full_name"), f.id(path+".repo.id")
	}
	return r
}

func (f fields) workflowRun(e *Event) {
	f.object("workflow_run")
	e.Action = f.match("action", eventName, "an action's name")
	run := &WorkflowRun{
		ID: f.id("workflow_run.id"), Number: f.int("workflow_run.run_number"), Attempt: f.int("workflow_run.run_attempt"),
		Event: f.match("workflow_run.event", eventName, "an event's name"), HeadSHA: f.sha("workflow_run.head_sha"),
		Conclusion: f.perhaps("workflow_run.conclusion", 40), Path: f.perhaps("workflow_run.path", maxRef),
		Name: f.perhaps("workflow_run.name", 1000),
	}
	if !f.gone("workflow_run.head_branch") {
		run.HeadBranch = f.branch("workflow_run.head_branch")
	}
	if !f.gone("workflow_run.head_repository") {
		run.HeadRepository = f.repositoryName("workflow_run.head_repository.full_name")
		run.HeadRepositoryID = f.id("workflow_run.head_repository.id")
	}
	if !f.gone("workflow_run.actor") {
		run.ActorID = f.id("workflow_run.actor.id")
	}
	if f.id("workflow_run.repository.id") != e.Repository.ID {
		f.refuse("workflow_run.repository.id", "that of the event's repository")
	}
	e.Run = run
}

func (f fields) comment(e *Event) {
	f.object("issue")
	e.Action, e.Number = f.match("action", eventName, "an action's name"), f.int("issue.number")
	if e.OnIssue = f.gone("issue.pull_request"); !e.OnIssue {
		f.object("issue.pull_request")
	}
	e.Comment = f.written("comment", "created_at", "updated_at")
}

func (f fields) reviewComment(e *Event) {
	f.object("pull_request")
	e.Action, e.Number = f.match("action", eventName, "an action's name"), f.int("pull_request.number")
	e.Comment = f.written("comment", "created_at", "updated_at")
}

// reviewed reads a review, which may have no text of its own.
func (f fields) reviewed(e *Event) {
	f.object("pull_request")
	e.Action, e.Number = f.match("action", eventName, "an action's name"), f.int("pull_request.number")
	if f.gone("review.body") {
		f.values["review.body"] = value{kind: str}
	}
	e.Comment = f.written("review", "submitted_at", "submitted_at")
}

// written reads a text that a user wrote.
func (f fields) written(path, created, updated string) *Comment {
	f.object(path)
	c := &Comment{
		ID: f.id(path + ".id"), Body: f.body(path + ".body"), URL: f.address(path + ".html_url"),
		Created: f.time(path + "." + created), Updated: f.time(path + "." + updated),
	}
	if !f.gone(path + ".user") {
		c.AuthorID, c.AuthorLogin = f.id(path+".user.id"), f.login(path+".user.login")
		c.AuthorType = f.text(path+".user.type", 1, 40)
	}
	return c
}

func (f fields) mergeGroup(e *Event) {
	f.object("merge_group")
	e.Action = f.match("action", eventName, "an action's name")
	e.Group = &MergeGroup{
		Head: Ref{SHA: f.sha("merge_group.head_sha"), Ref: f.fullRef("merge_group.head_ref")},
		Base: Ref{SHA: f.sha("merge_group.base_sha"), Ref: f.fullRef("merge_group.base_ref")},
	}
}

// checkRun reads a person's request to run the plan of a check run again. It is treated as the
// command rerun in a comment of that person; no text of the payload is part of it.
func (f fields) checkRun(e *Event) {
	f.object("check_run")
	e.Action, e.Check = f.match("action", eventName, "an action's name"), &Check{ID: f.id("check_run.id")}
	identifier := ""
	if !f.gone("requested_action") {
		f.object("requested_action")
		identifier = f.perhaps("requested_action.identifier", 100)
	}
	if e.Action == "rerequested" || e.Action == "requested_action" && identifier == RerunAction {
		e.Comment = &Comment{ID: e.Check.ID, Body: "/fumehood rerun", AuthorID: e.SenderID, AuthorLogin: e.SenderLogin, AuthorType: e.SenderType}
	}
}

func (f fields) body(path string) string {
	v := f.values[path]
	if v.kind != str || len(v.text) > maxBody {
		f.refuse(path, "a comment's text")
	}
	return v.text
}

func (f fields) address(path string) string {
	s := f.text(path, 1, maxRef)
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.ContainsAny(s, " <>\"'`\\") {
		f.refuse(path, "an address")
	}
	return s
}

// dispatch reads workflow_dispatch. Its inputs come from a user with write access to
// the repository. GitHub's page sends text; the API also sends numbers and booleans.
func (f fields) dispatch(e *Event) {
	e.Ref, e.Inputs = f.text("ref", 1, maxRef), map[string]string{}
	if f.gone("inputs") {
		return
	}
	f.object("inputs")
	for _, path := range slices.Sorted(maps.Keys(f.values)) {
		name, ok := strings.CutPrefix(path, "inputs.")
		if !ok {
			continue
		}
		v := f.values[path]
		if v.kind != null && v.kind != str && v.kind != number && v.kind != boolean || len(v.text) > maxInputed || !utf8.ValidString(v.text) {
			f.refuse(path, "text, a number, true or false")
		}
		e.Inputs[name] = v.text
	}
	if len(e.Inputs) > maxInputs {
		f.refuse("inputs", "an object of at most 50 names")
	}
	if pr := strings.TrimSpace(e.Inputs["pr"]); pr != "" {
		n, err := strconv.ParseInt(pr, 10, 32)
		if err != nil || !positive.MatchString(pr) {
			f.stop("event.input", "inputs.pr", "give the pull request's number alone, for example 7, or nothing")
		}
		e.Number = int(n)
	}
}
