// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// A stage is a world with a real Actions runner (act), a release that the action
// downloads, and an artifact server.
type stage struct {
	*jobtest.World
	action    string // the action as released: this tree, with a release.env
	project   string // working directory of act: the repository with the workflows
	artifacts string
	releases  *httptest.Server
	downloads *requestLog
	tools     string
	installed string   // a directory that only root can change
	user      int      // user id of the runner
	local     []string // further arguments of act: replacements of actions, and secrets
}

type requestLog struct {
	mu    sync.Mutex
	paths []string
}

func (l *requestLog) add(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paths = append(l.paths, path)
}

const releaseVersion = "v0.0.0-e2e"

var buildRelease = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(shared, "release")
	return dir, runRelease("../..", dir, releaseVersion)
})

// runRelease builds a release of tree in dir.
func runRelease(tree, dir, version string) error {
	cmd := exec.Command("go", "run", "./tools/release", "--version", version, "--arch", "amd64", "--out", dir)
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// newStage makes a world whose repository has the example workflows.
func newStage(t *testing.T, fork bool, base, head map[string]string) *stage {
	t.Helper()
	if _, err := exec.LookPath("act"); err != nil {
		t.Fatalf("no act, which .ci/run installs: %v", err)
	}
	s := &stage{World: jobtest.NewWorld(t, fork, base, head), downloads: &requestLog{}}
	s.SetPermissions("contents:read", "pull_requests:write", "actions:read", "checks:write")
	release, err := buildRelease()
	if err != nil {
		t.Fatalf("cannot build a release: %v", err)
	}
	files := http.FileServer(http.Dir(release))
	s.releases = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.downloads.add(r.URL.Path)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.releases.Close)
	s.action, s.project, s.artifacts, s.tools = s.path("action"), s.path("project"), s.path("artifacts"), s.path("action-cache/tool_cache") // where act has it
	s.installed, err = os.MkdirTemp("/var/lib", "fumehood-e2e-")
	s.must(err)
	t.Cleanup(func() { os.RemoveAll(s.installed) })
	s.must(os.Chmod(s.installed, 0o755))
	s.copyAction(release)
	s.copyProject()
	s.GH.FindArtifacts(githubtest.ArtifactFolder(s.artifacts))
	return s
}

func (s *stage) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *stage) must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// copyAction copies the repository's files, as GitHub does for users of the action.
func (s *stage) copyAction(release string) {
	s.T.Helper()
	for from, to := range map[string]string{"../../action.yml": "action.yml", filepath.Join(release, "release.env"): "release.env",
		"../../.github/action/install.sh": ".github/action/install.sh", "../../.github/action/place.sh": ".github/action/place.sh"} {
		data, err := os.ReadFile(from)
		s.must(err)
		path := filepath.Join(s.action, to)
		s.must(os.MkdirAll(filepath.Dir(path), 0o755))
		s.must(os.WriteFile(path, data, 0o755))
	}
}

// copyProject makes the repository that the workflows belong to.
func (s *stage) copyProject() {
	s.T.Helper()
	workflows := filepath.Join(s.project, ".github/workflows")
	s.must(os.MkdirAll(workflows, 0o755))
	examples, err := filepath.Glob("../../.github/examples/*.yml")
	s.must(err)
	for _, path := range examples {
		data, err := os.ReadFile(path)
		s.must(err)
		s.must(os.WriteFile(filepath.Join(workflows, filepath.Base(path)), data, 0o644))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "master", s.project}, {"-C", s.project, "add", "-A"}, {"-C", s.project, "commit", "-q", "-m", "workflows"},
		{"-C", s.project, "remote", "add", "origin", "https://github.com/" + jobtest.Hub}} {
		s.GitIn("", args...)
	}
}

// edit changes one of the project's workflows, as its maintainers would.
func (s *stage) edit(workflow string, replacements ...string) {
	s.T.Helper()
	path := filepath.Join(s.project, ".github/workflows", workflow)
	data, err := os.ReadFile(path)
	s.must(err)
	text := strings.NewReplacer(replacements...).Replace(string(data))
	if text == string(data) {
		s.T.Fatalf("nothing to replace in %s", workflow)
	}
	s.must(os.WriteFile(path, []byte(text), 0o644))
}

// An actRun is the result of running act.
type actRun struct {
	code    int
	log     string
	summary string
}

// play runs one workflow on an event.
func (s *stage) play(workflow, event string, payload []byte, env ...string) actRun {
	s.T.Helper()
	cmd := s.command(workflow, event, payload, env...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.T.Fatal(err)
	}
	return read(cmd.ProcessState.ExitCode(), log.String())
}

func (s *stage) command(workflow, event string, payload []byte, env ...string) *exec.Cmd {
	s.T.Helper()
	s.RunID++
	s.AddRun(event, "success")
	file := s.path(fmt.Sprintf("event-%d.json", s.RunID))
	s.must(os.WriteFile(file, payload, 0o644))
	act, err := exec.LookPath("act")
	s.must(err)
	args := []string{
		event, "-W", ".github/workflows/" + workflow, "-e", file, "-P", "ubuntu-24.04=-self-hosted", "--no-cache-server", "--json",
		"--action-cache-path", s.path("action-cache"), "--action-offline-mode", "-s", "GITHUB_TOKEN=" + jobtest.JobToken,
		"--local-repository", "fumehood/fumehood@v1=" + s.action, "--local-repository", uploadAction(s.T) + "=" + stub(s.T),
		"--artifact-server-path", s.artifacts, "--artifact-server-addr", "127.0.0.1", "--artifact-server-port", freePort(s.T),
		"-a", "octocat",
	}
	args = append(args, s.local...)
	for _, v := range append([]string{
		"GITHUB_API_URL=" + s.GH.URL, "GITHUB_SERVER_URL=" + s.Git.URL, "GITHUB_REPOSITORY=" + jobtest.Hub, "GITHUB_RUN_ID=" + fmt.Sprint(s.RunID), "GITHUB_RUN_NUMBER=" + fmt.Sprint(s.RunID),
		"FUMEHOOD_RELEASE_URL=" + s.releases.URL, "FUMEHOOD_INSTALL_DIR=" + s.installed, "FUMEHOOD_CACHE=" + s.Cache,
	}, env...) {
		args = append(args, "--env", v)
	}
	s.must(os.MkdirAll(s.path("home"), 0o755))
	path := os.Getenv("PATH")
	if s.user != 0 {
		act, path = s.giveTo(act), "/usr/sbin:/usr/bin:/sbin:/bin"
		s.must(os.Chown(file, s.user, s.user))
	}
	cmd := exec.Command(act, args...)
	cmd.Dir = s.project
	cmd.Env = []string{"PATH=" + path, "HOME=" + s.path("home")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.user), Gid: uint32(s.user), NoSetGroups: s.user == 0}}
	return cmd
}

// giveTo gives the stage's user the files and rights of a runner, and returns a
// runner that the user may start.
func (s *stage) giveTo(act string) string {
	s.T.Helper()
	data, err := os.ReadFile(act)
	s.must(err)
	own := s.path("act")
	s.must(os.WriteFile(own, data, 0o755))
	s.must(os.Chmod(filepath.Dir(s.Dir), 0o755))
	s.must(os.Chown(s.Dir, s.user, s.user))
	for _, dir := range []string{s.project, s.action, s.path("home")} {
		s.must(filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, s.user, s.user)
		}))
	}
	return own
}

// artifactFiles returns the files of an artifact of the last run.
func (s *stage) artifactFiles(name string) (files map[string][]byte) {
	s.T.Helper()
	for _, a := range githubtest.ArtifactFolder(s.artifacts)(s.RunID) {
		if a.Name == name {
			rezipped(s.T.(*testing.T), a.Data, func(all map[string][]byte) { files = all })
		}
	}
	if len(files) == 0 {
		s.T.Fatalf("no artifact %s", name)
	}
	return files
}

// read parses act's log: the messages, and the step summaries.
func read(code int, log string) actRun {
	r := actRun{code: code}
	for line := range strings.Lines(log) {
		var l struct{ Command, Content, Msg, Job string }
		if json.Unmarshal([]byte(line), &l) != nil {
			r.log += line
			continue
		}
		if l.Command == "summary" {
			r.summary += l.Content
		} else {
			r.log += l.Job + "| " + strings.TrimRight(l.Msg, "\n") + "\n"
		}
	}
	return r
}
