// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package job_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

// moving is a world in which others move its branches at any request.
type moving struct {
	world
	random *rand.Rand
	fork   string         // its bare repository
	heads  map[int]string // every commit that was the head of each pull request, joined
	tips   []string       // of the default branch, oldest first
	denied map[string]bool
	done   []string // what was moved, for a failure's message
	armed  int      // requests until the next move, 0 for none
}

func newMoving(t *testing.T, seed uint64) *moving {
	m := &moving{world: newWorld(t, true, nil, nil), random: rand.New(rand.NewPCG(seed, 17)), heads: map[int]string{}, denied: map[string]bool{}}
	m.fork = filepath.Join(m.Dir, "git", jobtest.ForkRepo+".git")
	if err := os.CopyFS(m.fork, os.DirFS(m.Repo)); err != nil {
		t.Fatal(err)
	}
	m.GH.AddRepository(githubtest.Repository{Name: jobtest.ForkRepo, ID: jobtest.ForkID, Fork: true, Git: m.fork})
	m.tips = []string{m.Base}
	m.pushFork(m.Base)
	for _, number := range []int{2, 3} {
		m.GH.OpenPR(githubtest.PR{Number: number, Author: "octocat", Head: githubtest.Ref{Repository: jobtest.ForkRepo, Ref: "changes"}, Base: githubtest.Ref{Ref: "master", Repository: jobtest.Hub}})
	}
	m.GH.BeforeRequest("", func(*http.Request) {
		if m.armed--; m.armed == 0 {
			m.move()
		}
	})
	m.note()
	return m
}

// pushFork pushes a commit after parent to the fork's branch. Its file names the push.
func (m *moving) pushFork(parent string) {
	name := fmt.Sprintf("marker-%08x", m.random.Uint32())
	m.GH.PushCommit(jobtest.ForkRepo, "changes", m.Commit(m.fork, name, parent, jobtest.MergeFiles(jobtest.BaseFiles, map[string]string{"id.txt": name + "\n"})))
}

// note records what the API confirms now.
func (m *moving) note() {
	for _, number := range []int{2, 3} {
		m.heads[number] += m.GH.PullRequest(number).Head.SHA + " "
	}
}

// move does one thing that others do: push, force-push, push to the default branch with or
// without a rule, delete the branch, or close and reopen a pull request.
func (m *moving) move() {
	tip := strings.TrimSpace(m.GitIn(m.fork, "rev-parse", "HEAD"))
	branch := m.GitIn(m.fork, "for-each-ref", "--format=%(objectname)", "refs/heads/changes")
	kind := m.random.IntN(6)
	m.done = append(m.done, []string{"push", "force-push", "rule", "no rule", "delete", "close or open"}[kind])
	switch {
	case kind == 0 && branch != "":
		m.pushFork(branch)
	case kind == 1:
		m.pushFork(tip)
	case kind == 2, kind == 3:
		files := jobtest.MergeFiles(jobtest.BaseFiles, map[string]string{"other.txt": fmt.Sprint(m.random.Uint32(), "\n")})
		if kind == 2 {
			files = jobtest.MergeFiles(files, denyRule("cat"))
		}
		sha := m.Commit(m.Repo, "master", m.tips[len(m.tips)-1], files)
		m.GH.PushCommit(jobtest.Hub, "master", sha)
		m.tips, m.denied[sha] = append(m.tips, sha), kind == 2
	case kind == 4 && branch != "":
		m.GH.DeleteBranch(jobtest.ForkRepo, "changes")
	case kind == 5:
		m.GH.ChangePullRequest(2+m.random.IntN(2), func(pr *githubtest.PR) {
			state := "closed"
			if pr.State == state && branch == pr.Head.SHA {
				state = "open"
			}
			pr.State = state
		})
	}
	m.note()
}

func (m *moving) markerOf(sha string) string {
	return strings.TrimSpace(m.GitIn(m.fork, "cat-file", "blob", sha+":id.txt"))
}

var (
	markers   = regexp.MustCompile(`marker-[0-9a-f]{8}`)
	readTip   = regexp.MustCompile(`policy and configuration: master at ([0-9a-f]{12})`)
	shownHead = regexp.MustCompile(`"sections":\[\{[^{}\[\]]*"head":"([0-9a-f]{40})"`)
)

// tip returns the commit whose policy a step read, which must have been the default branch's
// since the step began.
func (m *moving) tip(s jobtest.Step, began int) string {
	m.T.Helper()
	found := readTip.FindStringSubmatch(s.Log)
	if found == nil {
		return ""
	}
	i := slices.IndexFunc(m.tips[began-1:], func(sha string) bool { return strings.HasPrefix(sha, found[1]) })
	if i < 0 {
		m.T.Fatalf("after %v: policy of %s, which was not the tip\n%s", m.done, found[1], s.Log)
	}
	return m.tips[began-1:][i]
}

// run is a pull request's run, whose event may be older than what the API says.
func (m *moving) run(number int) jobtest.Step {
	m.Head = m.GH.PullRequest(number).Head.SHA
	event := m.EventPayload("pull_request.opened.fork", func(p map[string]any) {
		p["number"], p["pull_request"].(map[string]any)["number"] = number, number
	})
	began := len(m.tips)
	m.armed = 1 + m.random.IntN(12)
	s := m.RunStep("pull_request", event, "INPUT_PLAN=schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: cat id.txt}\n")
	m.armed = 0
	tip := m.tip(s, began)
	var want string
	switch conclusion := s.Outputs["conclusion"]; {
	case conclusion == "skipped":
		if pr := m.GH.PullRequest(number); pr.Head.SHA == m.Head && pr.State == "open" && !slices.Contains(m.done, "close or open") {
			m.T.Fatalf("after %v: nothing was run, and nothing had moved\n%s", m.done, s.Log)
		}
		return s
	case conclusion == "success" && !m.denied[tip]:
		want = m.markerOf(m.Head)
	case conclusion != "denied" || !m.denied[tip]:
		m.T.Fatalf("after %v: conclusion %s, tip %.12s denies: %t\n%s", m.done, conclusion, tip, m.denied[tip], s.Log)
	}
	for _, found := range markers.FindAllString(s.Summary+s.Log, -1) {
		if found != want {
			m.T.Fatalf("after %v: %s ran, and the event's commit is %s\n%s", m.done, found, want, s.Log)
		}
	}
	return s
}

// checkPosted checks what is posted: on each pull request only commits that were its head, their
// own output, and its own number.
func (m *moving) checkPosted(log string) {
	m.T.Helper()
	for _, number := range []int{2, 3} {
		for _, c := range m.GH.CommentsBy(number, githubtest.ActionsBot) {
			head := shownHead.FindStringSubmatch(c.Body)
			if head == nil || !strings.Contains(m.heads[number], head[1]) || !strings.Contains(c.Body, fmt.Sprintf("pull request %d ", number)) || strings.Contains(c.Body, "report.malformed") {
				m.T.Fatalf("after %v: posted on %d:\n%s\n%s", m.done, number, c.Body, log)
			}
			for _, found := range markers.FindAllString(c.Body, -1) {
				if found != m.markerOf(head[1]) {
					m.T.Fatalf("after %v: posted on %d, for %s: %s\n%s", m.done, number, head[1], found, c.Body)
				}
			}
		}
	}
}

// THREATS 5, 9, 27: while branches are pushed, force-pushed and deleted, rules are merged and
// pull requests closed at any request, what runs is the commit of the event, judged by a tip
// that the default branch had during the step, and posted on its own pull request.
func TestNightlyEveryInterleaving(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			m := newMoving(t, seed)
			posted := 0
			for range 5 {
				m.RunID += 10
				number := 2 + m.random.IntN(2)
				if m.GH.PullRequest(number).State == "closed" {
					m.pushFork(m.Base)
					m.GH.ChangePullRequest(number, func(pr *githubtest.PR) { pr.State = "open" })
					m.pushFork(m.Base)
					m.note()
				}
				s := m.run(number)
				if s.Outputs["artifact-path"] != "" {
					m.UploadArtifact(s, nil)
				}
				began := len(m.tips)
				m.armed = 1 + m.random.IntN(14)
				r := m.RunReport(nil, "INPUT_FAIL_ON=error")
				m.armed = 0
				m.tip(r, began)
				if m.checkPosted(r.Log); r.Outputs["comment-url"] != "" {
					posted++
				}
			}
			if posted == 0 {
				t.Errorf("after %v: nothing was posted", m.done)
			}
			t.Logf("%d posted after %v", posted, m.done)
		})
	}
}
