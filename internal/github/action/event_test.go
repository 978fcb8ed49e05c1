// SPDX-License-Identifier: Apache-2.0

package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/cputime"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const events = "../../../testdata/github/events"

// payloadOf reads one of GitHub's examples.
// A check run requests its plan again by our action or by GitHub's own button, as the sender and
// with a fixed command: no other text of the payload is read. Everything else requests nothing.
func TestReadCheckRun(t *testing.T) {
	for _, tt := range []struct {
		action    string
		requested any
		asks      bool
	}{
		{"requested_action", map[string]any{"identifier": RerunAction}, true},
		{"rerequested", nil, true},
		{"rerequested", map[string]any{}, true},
		{"requested_action", map[string]any{"identifier": "lgtm|26764"}, false},
		{"requested_action", map[string]any{"identifier": RerunAction + " "}, false},
		{"requested_action", nil, false},
		{"created", map[string]any{"identifier": RerunAction}, false},
		{"completed", nil, false},
	} {
		var p map[string]any
		if err := json.Unmarshal(payloadOf(t, "check_run.requested_action.json"), &p); err != nil {
			t.Fatal(err)
		}
		p["action"], p["requested_action"] = tt.action, tt.requested
		p["check_run"].(map[string]any)["external_id"] = "fumehood:1:/fumehood run rm"
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ReadEvent("check_run", data)
		if err != nil || e.Check.ID != 1494503112 || (e.Comment != nil) != tt.asks || e.Number != 0 {
			t.Fatalf("%s, %v: %+v, %v", tt.action, tt.requested, e, err)
		}
		if c := e.Comment; tt.asks && (c.Body != "/fumehood rerun" || c.AuthorID != e.SenderID || c.AuthorLogin != "octocat" || c.AuthorType != "User") {
			t.Errorf("%+v", c)
		}
		r := Runner{EventName: "check_run", Repository: e.Repository.Name}
		if a, err := Admit(r, e, Inputs{Phase: PhaseTrigger}, Facts{}); err != nil || (a.Phase == Trigger) != tt.asks {
			t.Errorf("%s, %v: %+v, %v", tt.action, tt.requested, a, err)
		}
	}
}

func payloadOf(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(events, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// changed returns a payload in which the value at a dotted path is replaced; nil
// removes it, and json.RawMessage("null") sets it to null.
func changed(t testing.TB, data []byte, path string, to any) []byte {
	t.Helper()
	var root map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(path, ".")
	at := root
	for _, name := range names[:len(names)-1] {
		at = at[name].(map[string]any)
	}
	if last := names[len(names)-1]; to == nil {
		delete(at, last)
	} else {
		at[last] = to
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var jsonNull = json.RawMessage("null")

func TestEvents(t *testing.T) {
	const head, base = "ec26c3e57ca3a959ca5aad62de7213c562f8c821", "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"
	repository := Repository{ID: 186853002, Name: "Codertocat/Hello-World", DefaultBranch: "master", Visibility: "public"}
	own := &PullRequest{
		Number: 2, State: "open", AuthorID: 21031067, AuthorLogin: "Codertocat",
		Head: Ref{SHA: head, Ref: "changes", Repository: "Codertocat/Hello-World", RepositoryID: 186853002},
		Base: Ref{SHA: base, Ref: "master", Repository: "Codertocat/Hello-World", RepositoryID: 186853002},
	}
	fork, gone := *own, *own
	fork.Fork, fork.AuthorID, fork.AuthorLogin = true, 583231, "octocat"
	fork.Head = Ref{SHA: head, Ref: "evil", Repository: "octocat/Hello-World", RepositoryID: 999}
	gone = fork
	gone.Head = Ref{SHA: head, Ref: "evil"}
	when := time.Date(2019, 5, 15, 15, 20, 21, 0, time.UTC)
	comment := &Comment{ID: 492700400, Body: "/fumehood run\n", AuthorID: 21031067, AuthorLogin: "Codertocat", AuthorType: "User",
		URL: "https://github.com/Codertocat/Hello-World/pull/2#issuecomment-492700400", Created: when, Updated: when}
	tests := []struct {
		file, event string
		want        Event
	}{
		{"pull_request.opened.json", "pull_request", Event{Action: "opened", Number: 2, PR: own}},
		{"pull_request.synchronize.json", "pull_request", Event{Action: "synchronize", Number: 2, PR: own}},
		{"pull_request.opened.fork.json", "pull_request", Event{Action: "opened", Number: 2, PR: &fork, SenderID: 583231, SenderLogin: "octocat"}},
		{"pull_request.opened.deletedfork.json", "pull_request", Event{Action: "opened", Number: 2, PR: &gone, SenderID: 583231, SenderLogin: "octocat"}},
		{"issue_comment.created.pr.json", "issue_comment", Event{Action: "created", Number: 2, Comment: comment}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			want := tt.want
			want.Name, want.Repository, want.SenderType = tt.event, repository, "User"
			if want.SenderID == 0 {
				want.SenderID, want.SenderLogin = 21031067, "Codertocat"
			}
			got, err := ReadEvent(tt.event, payloadOf(t, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkflowRunEvent(t *testing.T) {
	got, err := ReadEvent("workflow_run", payloadOf(t, "workflow_run.completed.fork.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := Event{
		Name: "workflow_run", Action: "completed", Repository: Repository{ID: 300029405, Name: "octo-org/octo-repo", DefaultBranch: "master", Visibility: "public"},
		SenderID: 15669918, SenderLogin: "Codertocat", SenderType: "User",
		Run: &WorkflowRun{ID: 289782451, Number: 163, Attempt: 1, Event: "pull_request", HeadSHA: "3484a3fb816e0859fd6e1cea078d76385ff50625",
			HeadBranch: "master", HeadRepository: "octo-org/octo-repo", HeadRepositoryID: 300029405, Conclusion: "success",
			Path: ".github/workflows/test.yml", ActorID: 15669918},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestCommentOnAnIssue(t *testing.T) {
	e, err := ReadEvent("issue_comment", payloadOf(t, "issue_comment.created.json"))
	if err != nil || !e.OnIssue || e.Number == 0 || e.Comment == nil {
		t.Errorf("event %+v, error %v", e, err)
	}
}

func dispatch(inputs string) []byte {
	return []byte(`{"inputs":` + inputs + `,"ref":"refs/heads/main","repository":{"id":1,"full_name":"a/b"},` +
		`"sender":{"id":2,"login":"c","type":"User"},"workflow":".github/workflows/x.yml"}`)
}

func TestDispatchEvent(t *testing.T) {
	tests := []struct {
		name, inputs string
		number       int
		want         map[string]string
	}{
		{"none", "null", 0, map[string]string{}},
		{"values", `{"pr":"7","a.b":"x","dry":true,"n":1.5,"none":null}`, 7, map[string]string{"pr": "7", "a.b": "x", "dry": "true", "n": "1.5", "none": ""}},
		{"no pull request", `{"pr":""}`, 0, map[string]string{"pr": ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := ReadEvent("workflow_dispatch", dispatch(tt.inputs))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, e.Inputs); diff != "" || e.Number != tt.number || e.Ref != "refs/heads/main" {
				t.Errorf("number %d, ref %q, inputs (-want +got):\n%s", e.Number, e.Ref, diff)
			}
		})
	}
	for _, inputs := range []string{`{"pr":"x"}`, `{"pr":"0"}`, `{"pr":"1e3"}`, `{"pr":-1}`, `{"pr":"#7"}`} {
		checkStop(t, "workflow_dispatch", dispatch(inputs), "event.input")
	}
	for _, inputs := range []string{`{"a":{}}`, `{"a":[]}`, `[]`, `"x"`, manyNames(51)} {
		checkStop(t, "workflow_dispatch", dispatch(inputs), "event.malformed")
	}
}

func manyNames(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"i%d":"x"`, i))
	}
	return "{" + strings.Join(list, ",") + "}"
}

func checkStop(t *testing.T, event string, data []byte, code string) *proposal.StopError {
	t.Helper()
	e, err := ReadEvent(event, data)
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code || stop.Hint == "" {
		t.Errorf("error %v, want %s", err, code)
		return &proposal.StopError{}
	}
	if diff := cmp.Diff(Event{}, e); diff != "" {
		t.Errorf("a refused event is returned: %s", diff)
	}
	return stop
}

func TestEventsRefused(t *testing.T) {
	lanetest.SkipShort(t)
	const pr, run, comment = "pull_request.opened.json", "workflow_run.completed.json", "issue_comment.created.pr.json"
	tests := []struct {
		name, file, path string
		to               any
		message          string
	}{
		{"no number", pr, "number", nil, "has no number: want a positive whole number"},
		{"number as text", pr, "number", "2", `has invalid number "2"`},
		{"number that is no whole one", pr, "number", json.Number("2.0"), `has invalid number "2.0"`},
		{"huge number", pr, "number", json.Number("4294967298"), "2,147,483,648"},
		{"two numbers", pr, "pull_request.number", 3, "the same as number"},
		{"short SHA", pr, "pull_request.head.sha", "ec26c3e", "a full commit SHA"},
		{"SHA in capitals", pr, "pull_request.head.sha", strings.Repeat("A", 40), "a full commit SHA"},
		{"SHA with a newline", pr, "pull_request.base.sha", strings.Repeat("a", 40) + "\n", "a full commit SHA"},
		{"no head", pr, "pull_request.head", jsonNull, "an object"},
		{"no pull request", pr, "pull_request", []int{1}, "an object"},
		{"state", pr, "pull_request.state", "merged", "open or closed"},
		{"draft as text", pr, "pull_request.draft", "false", "true or false"},
		{"login", pr, "pull_request.user.login", "a b", "a login"},
		{"author without an id", pr, "pull_request.user.id", 0, "a positive whole number"},
		{"another base", pr, "pull_request.base.repo.id", 7, "the repository of the event"},
		{"another base's name", pr, "pull_request.base.repo.full_name", "a/b", "the repository of the event"},
		{"head repository", pr, "pull_request.head.repo.full_name", "a/../b", "a repository's owner/name"},
		{"repository", pr, "repository.full_name", "a", "a repository's owner/name"},
		{"no repository", pr, "repository", nil, "an object"},
		{"no sender", pr, "sender", nil, "a positive whole number"},
		{"action", pr, "action", "opened\n::error::x", "an action's name"},
		{"long branch", pr, "pull_request.head.ref", strings.Repeat("a", 1025), "1 to 1024 bytes"},
		{"branch of two lines", pr, "pull_request.head.ref", "a\nb", "one line"},
		{"run's SHA", run, "workflow_run.head_sha", jsonNull, "a full commit SHA"},
		{"run of another repository", run, "workflow_run.repository.id", 5, "that of the event's repository"},
		{"run's event", run, "workflow_run.event", "Push!", "an event's name"},
		{"run's attempt", run, "workflow_run.run_attempt", 0, "a positive whole number"},
		{"run's conclusion", run, "workflow_run.conclusion", strings.Repeat("x", 41), "40 bytes"},
		{"comment without a body", comment, "comment.body", jsonNull, "a comment's text"},
		{"long comment", comment, "comment.body", strings.Repeat("x", maxBody+1), "a comment's text"},
		{"comment's time", comment, "comment.created_at", "yesterday", "a time"},
		{"comment's address", comment, "comment.html_url", "javascript:alert(1)", "an address"},
		{"comment's address with Markdown", comment, "comment.html_url", "https://x/ [a](b)", "an address"},
		{"marker of a pull request", comment, "issue.pull_request", true, "an object"},
		{"no comment", comment, "comment", nil, "an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, _, _ := strings.Cut(tt.file, ".")
			stop := checkStop(t, event, changed(t, payloadOf(t, tt.file), tt.path, tt.to), "event.malformed")
			if !strings.Contains(stop.Message, tt.message) || !strings.Contains(stop.Message, "(line 1, column ") || len(stop.Message) > 400 {
				t.Errorf("message %q, want %q", stop.Message, tt.message)
			}
		})
	}
}

func TestEventsTaken(t *testing.T) {
	const pr, run, comment = "pull_request.opened.json", "workflow_run.completed.json", "issue_comment.created.pr.json"
	tests := []struct {
		name, file, path string
		to               any
	}{
		{"no draft", pr, "pull_request.draft", nil},
		{"no author", pr, "pull_request.user", jsonNull},
		{"SHA-256", pr, "pull_request.head.sha", strings.Repeat("0a", 32)},
		{"what GitHub adds", pr, "pull_request.head.new_thing", map[string]any{"a": []any{1, "x", nil}}},
		{"a name in another case is another name", pr, "Number", "x"},
		{"a branch in another language", pr, "pull_request.head.ref", "фикс/été-🛡️"},
		{"no actor", run, "workflow_run.actor", jsonNull},
		{"no head repository", run, "workflow_run.head_repository", jsonNull},
		{"no branch", run, "workflow_run.head_branch", jsonNull},
		{"no conclusion", run, "workflow_run.conclusion", jsonNull},
		{"no comment's author", comment, "comment.user", jsonNull},
		{"an empty comment", comment, "comment.body", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event, _, _ := strings.Cut(tt.file, ".")
			if _, err := ReadEvent(event, changed(t, payloadOf(t, tt.file), tt.path, tt.to)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHostileBranches(t *testing.T) {
	for _, name := range []string{"--upload-pack=touch x", "-x", "a..b", "a b", "a~1", "a^{}", "a:b", "a?", "a*", "a[b", `a\b`, "/a", "a/", "a//b", "a.", "a.lock", "a@{1}"} {
		stop := checkStop(t, "pull_request", changed(t, payloadOf(t, "pull_request.opened.json"), "pull_request.head.ref", name), "event.branch")
		if !strings.Contains(stop.Message, "pull_request.head.ref") {
			t.Errorf("%q: message %q", name, stop.Message)
		}
	}
}

func TestUnsupportedEvents(t *testing.T) {
	for _, event := range []string{"check_suite", "schedule", "", "Pull_request"} {
		for _, data := range [][]byte{payloadOf(t, "check_run.requested_action.json"), payloadOf(t, "pull_request.opened.json"), nil, []byte("\xff{")} {
			e, err := ReadEvent(event, data)
			if err != nil || e.Name != event || e.PR != nil || e.Number != 0 {
				t.Fatalf("%s: %+v, %v", event, e, err)
			}
			for _, phase := range matrixPhases {
				a, err := Admit(Runner{EventName: event}, e, Inputs{Phase: phase, Plan: "plan.json"}, goodFacts)
				if err != nil || a.Phase != Nothing || !strings.Contains(a.Reason, "supported are pull_request, workflow_run, issue_comment, ") {
					t.Errorf("%s: %+v, %v", event, a, err)
				}
				if got := outcomeOfAdmit(t, Runner{EventName: event}, e, Inputs{Phase: phase, Plan: "plan.json", UnsupportedEvent: UnsupportedError}, goodFacts); got != "event.unsupported" {
					t.Errorf("%s: %s with unsupported-event: error", event, got)
				}
			}
		}
	}
	checkStop(t, "pull_request_target", payloadOf(t, "pull_request.opened.fork.json"), "event.pull-request-target")
	checkStop(t, "pull_request_target", nil, "event.pull-request-target")
}

func TestPayloadsThatAreNoJSON(t *testing.T) {
	whole := string(payloadOf(t, "pull_request.opened.json"))
	tests := []struct{ name, data, message string }{
		{"empty", "", "is not JSON: unexpected end of JSON input (line 1, column 1)"},
		{"cut", whole[:len(whole)/2], "is not JSON: unexpected end of JSON input"},
		{"a list", "[]", "is not a JSON object (line 1, column 1)"},
		{"null", "null", "is not a JSON object"},
		{"more behind", "{}\n {}", "is not JSON: invalid character '{' after top-level value (line 2, column 2)"},
		{"a name twice", "{\"a\":1,\n \"b\":{\"c\":1,\"c\":2}}", `has the name "c" twice in one object (line 2, column 13)`},
		{"a name twice, escaped", `{"number":1,"n\u0075mber":2}`, `has the name "number" twice`},
		{"an invalid byte", "{\"a\":\n\"\xff\"}", "is not UTF-8 (line 2, column 2)"},
		{"too deep", `{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", "is nested more than 32 deep (line 1, column 37)"},
		{"much too deep", strings.Repeat(`{"a":`, 200_000), "is not JSON"},
		{"too many names", manyNames(maxKeys + 1), "has an object of more than 2000 names"},
		{"an empty object", "{}", "has no repository"},
		{"too large", strings.Repeat(" ", MaxEvent+1), "more than GitHub sends"},
		{"a byte order mark", "\ufeff{}", "is not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if stop := checkStop(t, "pull_request", []byte(tt.data), "event.malformed"); !strings.Contains(stop.Message, tt.message) {
				t.Errorf("message %q, want %q", stop.Message, tt.message)
			}
		})
	}
}

func TestLoadEvent(t *testing.T) {
	r := Runner{EventName: "pull_request", EventPath: filepath.Join(events, "pull_request.opened.json")}
	if e, err := LoadEvent(r); err != nil || e.Number != 2 {
		t.Errorf("event %+v, error %v", e, err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "missing"), t.TempDir()} {
		_, err := LoadEvent(Runner{EventName: "pull_request", EventPath: path})
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "event.unreadable" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A payload of GitHub's maximum size must not exhaust the runner.
func TestLargePayload(t *testing.T) {
	lanetest.SkipShort(t)
	large := changed(t, payloadOf(t, "pull_request.opened.json"), "pull_request.body", strings.Repeat("x \" ::error:: ", 1<<20))
	clock := cputime.Start()
	if _, err := ReadEvent("pull_request", large); err != nil {
		t.Fatal(err)
	}
	if took := clock.Stop(); took > 20*time.Second {
		t.Errorf("it took %s of a processor", took)
	}
}

// FuzzReadEvent: any payload gives an Event whose fields match their grammar, or a
// StopError with a code, and encoding/json accepts the same documents.
func FuzzReadEvent(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(events, "*.json"))
	if err != nil || len(files) < 9 {
		f.Fatalf("found %d payloads: %v", len(files), err)
	}
	for _, file := range files {
		event, _, _ := strings.Cut(filepath.Base(file), ".")
		f.Add(event, payloadOf(f, filepath.Base(file)))
	}
	f.Add("workflow_dispatch", dispatch(`{"pr":"7","a":true}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		e, err := ReadEvent(name, data)
		var stop *proposal.StopError
		if err != nil {
			if !errors.As(err, &stop) || !strings.HasPrefix(stop.Code, "event.") || stop.Hint == "" || len(stop.Message) > 1000 {
				t.Fatalf("error %v", err)
			}
			return
		}
		if e.Unsupported != "" {
			return
		}
		if !json.Valid(data) || !isRepository(e.Repository.Name) || e.Repository.ID <= 0 || e.SenderID <= 0 {
			t.Fatalf("event %+v", e)
		}
		if e.PR != nil {
			checkPullRequest(t, e)
		}
		if e.Group != nil && (!fullSHA.MatchString(e.Group.Head.SHA) || strings.HasPrefix(e.Group.Base.Ref, "-")) {
			t.Fatalf("merge group %+v", e.Group)
		}
		if e.Run != nil && !fullSHA.MatchString(e.Run.HeadSHA) {
			t.Fatalf("run %+v", e.Run)
		}
		checkAgreement(t, e, data)
	})
}

func checkPullRequest(t *testing.T, e Event) {
	t.Helper()
	pr := e.PR
	if !fullSHA.MatchString(pr.Head.SHA) || !fullSHA.MatchString(pr.Base.SHA) || pr.Number <= 0 || pr.Number != e.Number {
		t.Fatalf("pull request %+v", pr)
	}
	if !pr.Fork && pr.Head.RepositoryID != e.Repository.ID || strings.HasPrefix(pr.Head.Ref, "-") {
		t.Fatalf("pull request %+v", pr)
	}
}

// checkAgreement checks that a reader that keeps the last of two equal names sees
// the same values.
func checkAgreement(t *testing.T, e Event, data []byte) {
	t.Helper()
	var other map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&other); err != nil {
		t.Fatal(err)
	}
	sender := other["sender"].(map[string]any)
	if fmt.Sprint(sender["id"]) != fmt.Sprint(e.SenderID) || sender["login"] != e.SenderLogin {
		t.Fatalf("another reader sees sender %v, we see %d %s", sender, e.SenderID, e.SenderLogin)
	}
}
