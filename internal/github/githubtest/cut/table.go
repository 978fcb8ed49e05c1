// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// GitHub's examples have no pull request from a fork, no comment on a pull request
// and no run of either, so most payloads are derived. All are about pull request 2
// of Codertocat/Hello-World, except for the few unmodified examples.
var payloads = slices.Concat(pulls, comments, runs, others)

// setUser sets the user in the fields of paths to login.
func setUser(login string, id int, kind string, paths ...string) []edit {
	var list []edit
	for _, path := range paths {
		list = append(list, edit{path + ".login", login}, edit{path + ".id", id}, edit{path + ".type", kind})
	}
	return list
}

func concatEdits(lists ...[]edit) []edit { return slices.Concat(lists...) }

var (
	// fork makes pull request 2 come from octocat's fork.
	fork = concatEdits(setUser("octocat", 583231, "User", "pull_request.user", "pull_request.head.user", "sender"),
		[]edit{
			{"pull_request.author_association", "FIRST_TIME_CONTRIBUTOR"},
			{"pull_request.head.label", "octocat:evil"}, {"pull_request.head.ref", "evil"},
		})
	forkRepository = concatEdits(setUser("octocat", 583231, "User", "pull_request.head.repo.owner"), []edit{
		{"pull_request.head.repo.full_name", "octocat/Hello-World"}, {"pull_request.head.repo.id", 999}, {"pull_request.head.repo.fork", true},
	})
	closed = []edit{{"action", "closed"}, {"pull_request.state", "closed"},
		{"pull_request.closed_at", "2019-05-15T15:20:33Z"}}
)

var pulls = []payload{
	{file: "pull_request.opened", event: "pull_request", example: 12},
	{file: "pull_request.synchronize", event: "pull_request", example: 22},
	{file: "pull_request.opened.fork", event: "pull_request", example: 12, edits: concatEdits(fork, forkRepository)},
	{file: "pull_request.opened.deletedfork", event: "pull_request", example: 12, edits: concatEdits(fork, []edit{{"pull_request.head.repo", nil}})},
	{file: "pull_request.synchronize.fork", event: "pull_request", example: 22, edits: concatEdits(fork, forkRepository)},
	{file: "pull_request.opened.draft", event: "pull_request", example: 12, edits: []edit{
		{"pull_request.draft", true}, {"pull_request.mergeable_state", "draft"}}},
	{file: "pull_request.opened.dependabot", event: "pull_request", example: 12, edits: concatEdits(
		setUser("dependabot[bot]", 49699333, "Bot", "pull_request.user", "sender"),
		[]edit{{"pull_request.head.ref", "dependabot/go_modules/x-1.2.3"},
			{"pull_request.head.label", "Codertocat:dependabot/go_modules/x-1.2.3"}})},
	{file: "pull_request.reopened", event: "pull_request", example: 18},
	{file: "pull_request.closed", event: "pull_request", example: 4, edits: []edit{
		{"pull_request.merged", false}, {"pull_request.merged_at", nil}, {"pull_request.merged_by", nil}}},
	{file: "pull_request.closed.merged", event: "pull_request", example: 12, edits: concatEdits(closed, []edit{
		{"pull_request.merged", true}, {"pull_request.merged_at", "2019-05-15T15:20:33Z"},
		{"pull_request.merge_commit_sha", "c4295bd74fb0f4fda03689c3df3f2803b658fd85"}})},
	{file: "pull_request.closed.fork", event: "pull_request", example: 12, edits: concatEdits(fork, forkRepository, closed)},
}

// onPull makes issue 1 pull request 2.
var onPull = []edit{
	{"issue.number", 2},
	{"issue.url", "https://api.github.com/repos/Codertocat/Hello-World/issues/2"},
	{"issue.html_url", "https://github.com/Codertocat/Hello-World/pull/2"},
	{"comment.issue_url", "https://api.github.com/repos/Codertocat/Hello-World/issues/2"},
	{"comment.html_url", "https://github.com/Codertocat/Hello-World/pull/2#issuecomment-492700400"},
	{"issue.pull_request", obj{
		"url":       "https://api.github.com/repos/Codertocat/Hello-World/pulls/2",
		"html_url":  "https://github.com/Codertocat/Hello-World/pull/2",
		"diff_url":  "https://github.com/Codertocat/Hello-World/pull/2.diff",
		"patch_url": "https://github.com/Codertocat/Hello-World/pull/2.patch",
	}},
}

// commentPayload returns a new comment on pull request 2.
func commentPayload(file, body string, more ...[]edit) payload {
	return payload{file: file, event: "issue_comment", example: 1,
		edits: concatEdits(onPull, []edit{{"comment.body", body}}, concatEdits(more...))}
}

// setAuthor sets the comment's author.
func setAuthor(login string, id int, kind, association string) []edit {
	return concatEdits(setUser(login, id, kind, "comment.user", "sender"),
		[]edit{{"comment.author_association", association}})
}

// opener makes octocat the author of the pull request, as in the payloads of the fork.
var opener = setUser("octocat", 583231, "User", "issue.user")

var comments = []payload{
	{file: "issue_comment.created", event: "issue_comment", example: 1},
	{file: "issue_comment.created.pr", event: "issue_comment", example: 1, edits: concatEdits(onPull, []edit{{"comment.body", "/fumehood run\n"}})},
	commentPayload("issue_comment.created.pr.line", "/fumehood run go test ./...", opener),
	commentPayload("issue_comment.created.pr.plan", plan, opener),
	commentPayload("issue_comment.created.pr.approve", "/fumehood approve "+head[:12], opener),
	commentPayload("issue_comment.created.pr.rerun", "/fumehood rerun", opener),
	commentPayload("issue_comment.created.pr.help", "/fumehood help", opener),
	commentPayload("issue_comment.created.pr.talk", "Shall we `/fumehood run` this?", opener),
	commentPayload("issue_comment.created.pr.contributor", "/fumehood run go test ./...", opener,
		setAuthor("hubot", 480938, "User", "CONTRIBUTOR")),
	commentPayload("issue_comment.created.pr.author", "/fumehood approve "+head[:12], opener,
		setAuthor("octocat", 583231, "User", "FIRST_TIME_CONTRIBUTOR")),
	commentPayload("issue_comment.created.pr.bot", plan, opener,
		setAuthor("octo-reviewer[bot]", 90000666, "Bot", "CONTRIBUTOR")),
	commentPayload("issue_comment.created.pr.self", "/fumehood run go test ./...", opener,
		setAuthor("github-actions[bot]", 41898282, "Bot", "CONTRIBUTOR")),
	commentPayload("issue_comment.created.pr.locked", "/fumehood run go test ./...", opener,
		[]edit{{"issue.locked", true}, {"issue.active_lock_reason", "too heated"}}),
	commentPayload("issue_comment.created.pr.closed", "/fumehood run go test ./...", opener,
		[]edit{{"issue.state", "closed"}, {"issue.closed_at", "2019-05-15T15:20:33Z"}}),
	{file: "issue_comment.edited.pr", event: "issue_comment", example: 8, edits: concatEdits(onPull, opener, []edit{{"comment.body", "/fumehood run go test ./..."}})},
	{file: "issue_comment.deleted.pr", event: "issue_comment", example: 6, edits: concatEdits(onPull, opener)},
}

var (
	// ours is the run of this repository's workflow on pull request 2.
	ours = []edit{
		{"workflow_run.event", "pull_request"}, {"workflow_run.name", "fumehood"}, {"workflow.name", "fumehood"},
		{"workflow_run.path", ".github/workflows/fumehood.yml"}, {"workflow.path", ".github/workflows/fumehood.yml"},
		{"workflow_run.head_branch", "changes"},
	}
	forkRun = concatEdits(setUser("octocat", 583231, "User", "workflow_run.head_repository.owner", "workflow_run.actor",
		"workflow_run.triggering_actor", "sender"), []edit{
		{"workflow_run.head_branch", "evil"}, {"workflow_run.pull_requests", []any{}},
		{"workflow_run.head_repository.full_name", "octocat/Hello-World"}, {"workflow_run.head_repository.id", 999},
		{"workflow_run.head_repository.fork", true},
	})
	linked = []edit{{"workflow_run.pull_requests", []any{obj{
		"id": 279147437, "number": 2, "url": "https://api.github.com/repos/Codertocat/Hello-World/pulls/2",
		"head": obj{"ref": "changes", "sha": head, "repo": helloMinimal},
		"base": obj{"ref": "master", "sha": "f95f852bd8fca8fcc58a9a2d6c842781e32a215e", "repo": helloMinimal},
	}}}}
	helloMinimal = obj{"id": 186853002, "name": "Hello-World",
		"url": "https://api.github.com/repos/Codertocat/Hello-World"}
)

// finishedRunPayload is a finished run of this repository's workflow.
func finishedRunPayload(file string, more ...[]edit) payload {
	return payload{file: file, event: "workflow_run", example: 1, replace: hello,
		edits: concatEdits(ours, concatEdits(more...))}
}

func setConclusion(conclusion string) []edit { return []edit{{"workflow_run.conclusion", conclusion}} }

var runs = []payload{
	{file: "workflow_run.completed", event: "workflow_run", example: 1},
	{file: "workflow_run.completed.fork", event: "workflow_run", example: 1, edits: []edit{{"workflow_run.event", "pull_request"}}},
	finishedRunPayload("workflow_run.completed.pr", linked),
	finishedRunPayload("workflow_run.completed.pr.failure", linked, setConclusion("failure")),
	finishedRunPayload("workflow_run.completed.pr.fork", forkRun),
	finishedRunPayload("workflow_run.completed.pr.fork.failure", forkRun, setConclusion("failure")),
	finishedRunPayload("workflow_run.completed.pr.fork.cancelled", forkRun, setConclusion("cancelled")),
	finishedRunPayload("workflow_run.completed.pr.deletedfork", forkRun, []edit{{"workflow_run.head_repository", nil}}),
	finishedRunPayload("workflow_run.completed.comment",
		[]edit{{"workflow_run.event", "issue_comment"}, {"workflow_run.head_branch", "master"}}),
	finishedRunPayload("workflow_run.completed.push",
		[]edit{{"workflow_run.event", "push"}, {"workflow_run.head_branch", "master"}}),
	{file: "workflow_run.requested", event: "workflow_run", example: 4, replace: hello, edits: concatEdits(ours)},
}

// newer are fields that the schema requires and the older examples lack.
var newer = []edit{
	{"ref", "refs/heads/master"}, {"workflow", ".github/workflows/fumehood.yml"},
	{"repository.web_commit_signoff_required", false}, {"repository.custom_properties", obj{}},
}

var others = []payload{
	{file: "check_run.requested_action", event: "check_run", example: 6},
	{file: "merge_group.checks_requested", event: "merge_group", example: 1, replace: hello},
	{file: "pull_request_review.submitted", event: "pull_request_review", example: 2, edits: []edit{{"review.body", "/fumehood run go test ./..."}}},
	{file: "pull_request_review_comment.created", event: "pull_request_review_comment", example: 1, edits: []edit{{"comment.body", "/fumehood run go test ./..."}}},
	{file: "workflow_dispatch", event: "workflow_dispatch", example: 0, replace: hello, edits: concatEdits(newer, []edit{{"inputs", obj{"pr": "2"}}})},
	{file: "workflow_dispatch.bare", event: "workflow_dispatch", example: 0, replace: hello, edits: concatEdits(newer, []edit{{"inputs", nil}})},
}
