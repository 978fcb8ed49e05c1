// SPDX-License-Identifier: Apache-2.0

package action

import (
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of what a payload holds.
const (
	maxBody    = 65536 * 4 // bytes: GitHub takes 65,536 characters
	maxRef     = 1024
	maxInputs  = 50 // GitHub takes 25
	maxInputed = 65535
)

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
	eventWorkflowDispatch: paths("ref", "inputs"),
}

// paths adds what every event has.
func paths(own ...string) map[string]bool {
	set := map[string]bool{}
	for _, path := range append(own, "repository", "repository.id", "repository.full_name", "repository.default_branch",
		"sender", "sender.id", "sender.login", "sender.type") {
		set[path] = true
	}
	return set
}

// fields reads values of a payload by their grammar. The first that is wrong is
// kept in err; what is returned then means nothing.
type fields struct{ *payload }

func (f fields) refuse(path, want string) {
	v := f.values[path]
	switch v.kind {
	case absent:
		f.fail(v.at, "has no %s, which must be %s", path, want)
	case str, number, boolean:
		f.fail(v.at, "has %s as its %s, which must be %s", quoted(v.text), path, want)
	default:
		f.fail(v.at, "has a %s that is not %s", path, want)
	}
}

// stop refuses a value that is well formed and yet not to be worked with.
func (f fields) stop(code, path, hint string) {
	if f.err == nil {
		f.err = &proposal.StopError{Code: code, Message: path + " is " + quoted(f.values[path].text), Hint: hint}
	}
}

// gone reports whether a value is null or not there.
func (f fields) gone(path string) bool { return f.values[path].kind <= null }

func (f fields) object(path string) {
	if f.values[path].kind != object {
		f.refuse(path, "an object")
	}
}

func (f fields) id(path string) int64 {
	v := f.values[path]
	n, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != number || err != nil || !positive.MatchString(v.text) {
		f.refuse(path, "a positive whole number")
	}
	return n
}

func (f fields) int(path string) int {
	n := f.id(path)
	if n > math.MaxInt32 {
		f.refuse(path, "a number below 2,147,483,648")
	}
	return int(n)
}

func (f fields) bool(path string) bool {
	v := f.values[path]
	if v.kind != boolean {
		f.refuse(path, "true or false")
	}
	return v.text == "true"
}

// text reads a string of low to high bytes without control characters.
func (f fields) text(path string, low, high int) string {
	v := f.values[path]
	if v.kind != str || len(v.text) < low || len(v.text) > high || strings.ContainsFunc(v.text, unicode.IsControl) {
		f.refuse(path, "a string of one line with "+strconv.Itoa(low)+" to "+strconv.Itoa(high)+" bytes")
	}
	return v.text
}

// perhaps is text that may be null, empty or missing.
func (f fields) perhaps(path string, high int) string {
	if f.gone(path) {
		return ""
	}
	return f.text(path, 0, high)
}

func (f fields) match(path string, grammar *regexp.Regexp, want string) string {
	v := f.values[path]
	if v.kind != str || !grammar.MatchString(v.text) {
		f.refuse(path, want)
	}
	return v.text
}

func (f fields) sha(path string) string { return f.match(path, fullSHA, "a full commit SHA") }

func (f fields) login(path string) string { return f.match(path, loginName, "a login") }

func (f fields) repository(path string) Repository {
	f.object(path)
	return Repository{
		ID: f.id(path + ".id"), Name: f.repositoryName(path + ".full_name"),
		DefaultBranch: f.perhaps(path+".default_branch", maxRef),
	}
}

func (f fields) repositoryName(path string) string {
	v := f.values[path]
	if v.kind != str || !isRepository(v.text) {
		f.refuse(path, "a repository's owner/name")
	}
	return v.text
}

// branch reads a branch's name. What git refuses is refused, and a hyphen at its
// beginning, which would make it an option of a command line.
func (f fields) branch(path string) string {
	s := f.text(path, 1, maxRef)
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasSuffix(s, "/") || strings.HasSuffix(s, ".") ||
		strings.HasSuffix(s, ".lock") || strings.ContainsAny(s, " ~^:?*[\\") ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.Contains(s, "//") {
		f.stop("event.branch", path, "rename the branch: git or GitHub would not take its name, or a program would take it for an option")
	}
	return s
}

func (f fields) time(path string) time.Time {
	v := f.values[path]
	t, err := time.Parse(time.RFC3339, v.text)
	if v.kind != str || err != nil {
		f.refuse(path, "a time")
	}
	return t.UTC()
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

// ref reads one side of a pull request; its repository may be gone.
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
	f.object("comment")
	e.Action, e.Number = f.match("action", eventName, "an action's name"), f.int("issue.number")
	if e.OnIssue = f.gone("issue.pull_request"); !e.OnIssue {
		f.object("issue.pull_request")
	}
	c := &Comment{
		ID: f.id("comment.id"), Body: f.body("comment.body"), URL: f.address("comment.html_url"),
		Created: f.time("comment.created_at"), Updated: f.time("comment.updated_at"),
	}
	if !f.gone("comment.user") {
		c.AuthorID, c.AuthorLogin = f.id("comment.user.id"), f.login("comment.user.login")
		c.AuthorType = f.text("comment.user.type", 1, 40)
	}
	e.Comment = c
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

// dispatch reads workflow_dispatch. Its inputs come from someone who may write to
// the repository; GitHub's page sends text, the API also numbers and booleans.
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
		f.refuse("inputs", "of at most 50 names")
	}
	if pr := strings.TrimSpace(e.Inputs["pr"]); pr != "" {
		n, err := strconv.ParseInt(pr, 10, 32)
		if err != nil || !positive.MatchString(pr) {
			f.refuse("inputs.pr", "the number of a pull request")
		}
		e.Number = int(n)
	}
}
