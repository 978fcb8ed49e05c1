// SPDX-License-Identifier: Apache-2.0

package post_test

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/post"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	summaryUnits = 8000 // of a summary in the comment

	number = 2
	secret = "ghs_workflow"
)

// A town is a GitHub with a pull request in a real repository.
type town struct {
	*githubtest.Server
	t          *testing.T
	dir        string
	base, head string
}

// newTown has a pull request that turns the files before into the files after.
func newTown(t *testing.T, before, after map[string]string) *town {
	t.Helper()
	w := &town{t: t, dir: t.TempDir()}
	w.git("init", "-q", "--template=", "-b", "changes")
	w.base = w.commit("master", "", before, nil)
	w.head = w.commit("changes", w.base, after, nil)
	w.serve()
	return w
}

func (w *town) serve() {
	w.t.Helper()
	w.Server = githubtest.New(w.t, githubtest.Options{Git: filepath.Join(w.dir, ".git")})
	w.AddWorkflowToken(secret, "contents:read", "pull-requests:write")
	w.AddPR(githubtest.PR{Number: number, Author: "hubot", Head: githubtest.Ref{SHA: w.head}, Base: githubtest.Ref{SHA: w.base}})
}

func (w *town) git(args ...string) string {
	w.t.Helper()
	return w.gitWith("", args...)
}

func (w *town) gitWith(input string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", w.dir, "-c", "core.autocrlf=false", "-c", "core.safecrlf=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v\n%.500s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes files the whole content of a new commit on the branch. A file's mode is 100644
// unless modes has another one.
func (w *town) commit(branch, parent string, files, modes map[string]string) string {
	w.t.Helper()
	var input strings.Builder
	fmt.Fprintf(&input, "commit refs/heads/%s\ncommitter a <a@b> 1 +0000\ndata 1\nc\n", branch)
	if parent != "" {
		fmt.Fprintf(&input, "from %s\n", parent)
	}
	input.WriteString("deleteall\n")
	for name, text := range files {
		fmt.Fprintf(&input, "M %s inline \"%s\"\ndata %d\n%s\n", cmp.Or(modes[name], "100644"), quoteName.Replace(name), len(text), text)
	}
	w.gitWith(input.String(), "fast-import", "--quiet", "--force")
	return w.git("rev-parse", "refs/heads/"+branch)
}

// quoteName quotes what a name must not have in the input of git fast-import.
var quoteName = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// push makes files the pull request's head.
func (w *town) push(files map[string]string) {
	w.head = w.commit("changes", w.head, files, nil)
	w.MoveHead(number, w.head)
}

func (w *town) client(transport http.RoundTripper) *github.Client {
	w.t.Helper()
	c, err := github.New(github.Options{BaseURL: w.URL, Token: secret, Repository: "Codertocat/Hello-World", Transport: transport, Sleep: at})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func at(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func (w *town) post(d review.Document) post.Outcome {
	w.t.Helper()
	return post.Post(w.t.Context(), w.options(nil), d)
}

func (w *town) options(transport http.RoundTripper) post.Options {
	return post.Options{Client: w.client(transport), Author: github.Author{Login: githubtest.ActionsBot, ID: 41898282, Type: "Bot"}, PR: number, Sleep: at}
}

// document is a review of the head whose findings are verified.
func (w *town) document(findings ...proposal.ReviewFinding) review.Document {
	d := review.Document{Schema: review.Schema, Base: w.base, Head: w.head, Reviewed: true}
	for _, f := range findings {
		d.Results = append(d.Results, review.Result{Finding: f, Verdict: review.Verified, Why: "it fails",
			Position: &review.Position{Path: f.File, Line: f.Line, StartLine: f.Start, Side: "RIGHT"}})
	}
	return d
}

func finding(line int) proposal.ReviewFinding {
	return proposal.ReviewFinding{ID: fmt.Sprint("f", line), File: "f", Line: line, Severity: "high", Claim: fmt.Sprintf("line %d is wrong", line),
		Reproducer: &proposal.Proposal{Run: fmt.Sprintf("grep -qx %d f", line)}}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// small is a pull request whose file f has 30 lines, of which lines 10 and 11 are new. Each
// test gets a copy of one repository, because git takes longer than most tests.
func small(t *testing.T) *town {
	t.Helper()
	smallOnce.Do(func() {
		w := newTown(t, map[string]string{"f": numbered(30)}, smallFiles("ten\neleven\n"))
		smallTown = *w
		smallRepository = fstest.MapFS{}
		err := fs.WalkDir(os.DirFS(w.dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				smallRepository[path] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
				return err
			}
			data, err := os.ReadFile(filepath.Join(w.dir, path))
			smallRepository[path] = &fstest.MapFile{Data: data, Mode: 0o644}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	w := &town{t: t, dir: t.TempDir(), base: smallTown.base, head: smallTown.head}
	if err := os.CopyFS(w.dir, smallRepository); err != nil {
		t.Fatal(err)
	}
	w.serve()
	return w
}

var (
	smallOnce       sync.Once
	smallTown       town
	smallRepository fstest.MapFS
)

func smallFiles(lines string) map[string]string {
	return map[string]string{"f": strings.Replace(numbered(30), "10\n11\n", lines, 1)}
}

// once fails unless the pull request has exactly the comments of these keys, each once.
func (w *town) once(d review.Document) {
	w.t.Helper()
	count := map[string]int{}
	for _, c := range w.ReviewComments(number) {
		for _, r := range d.Results {
			if strings.Contains(c.Body, r.ClaimKey()) {
				count[r.ClaimKey()]++
			}
		}
	}
	for _, r := range d.Results {
		if count[r.ClaimKey()] != 1 {
			w.t.Errorf("%s has %d comments", r.Finding.ID, count[r.ClaimKey()])
		}
	}
}

// A review is posted once: on the lines of the head, as comments only. What is posted again says
// the same. A finding that is gone, or older than the pull request, is marked, and comes back.
func TestPost(t *testing.T) {
	w := small(t)
	with := "ten!\n"
	d := w.document(finding(10), finding(11))
	d.Results[0].Finding.Suggestion, d.Results[0].Suggestion = &with, &review.Suggestion{Offered: true}
	o := w.post(d)
	if o.Created != 2 || o.Failure != nil || len(o.Notes) > 0 || len(o.Comments) != 2 {
		t.Fatalf("%+v", o)
	}
	c := w.ReviewComments(number)[0]
	if c.Line != 10 || c.Commit != w.head || !strings.Contains(c.Body, "```suggestion\nten!\n```") || !strings.Contains(c.Body, "line 10 is wrong") || !strings.Contains(c.Body, "grep -qx 10 f") {
		t.Errorf("%+v", c)
	}
	if r := w.Reviews(number); len(r) != 1 || r[0].State != "COMMENTED" {
		t.Errorf("%+v", r)
	}
	if o := w.post(d); o.Created+o.Updated != 0 || o.Failure != nil {
		t.Errorf("again: %+v", o)
	}
	for _, verdict := range []review.Verdict{review.Flaky, review.NotRun, review.NotReproduced, review.NotReproduced, review.PreExisting, review.Verified} {
		before := w.ReviewComments(number)[0]
		d.Results[0].Verdict = verdict
		o := w.post(d)
		after := w.ReviewComments(number)[0]
		says := map[review.Verdict]string{review.NotReproduced: "No longer reproduced", review.PreExisting: "Older than", review.Verified: "Verified finding"}[verdict]
		if o.Created != 0 || o.Failure != nil || says == "" && after != before || !strings.Contains(after.Body, says) || after.Edits > 3 {
			t.Errorf("%s: %+v, %+v", verdict, o, after)
		}
	}
	w.once(d)
}

// On a new head nothing is repeated: a comment that GitHub carries along stays, one that is
// outdated says where its lines are. A review of another head is not posted.
func TestNewHead(t *testing.T) {
	w := small(t)
	d := w.document(finding(10), finding(11))
	w.post(d)
	old := d
	w.push(smallFiles("zero\nten\nELEVEN\n"))
	if o := w.post(old); o.Created+o.Updated != 0 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "newer commit") {
		t.Errorf("an old review: %+v", o)
	}
	d = w.document(finding(10), finding(11))
	d.Results[0].Finding.Line, d.Results[1].Finding.Line = 11, 12
	d.Results[0].Position.Line, d.Results[1].Position.Line = 11, 12
	for range 2 {
		w.post(d)
	}
	list := w.ReviewComments(number)
	if len(list) != 2 || list[0].Edits != 0 || list[1].Edits != 1 || !strings.Contains(list[1].Body, "Now at ``` f:12 ```") || len(w.Reviews(number)) != 1 {
		t.Errorf("%+v", list)
	}
	w.ChangePullRequest(number, func(pr *githubtest.PR) { pr.State = "closed" })
	if o := w.post(w.document(finding(13))); o.Created != 0 || len(o.Notes) != 1 {
		t.Errorf("closed: %+v", o)
	}
}

// What is on lines that were reviewed before gets no new comment, but its old one is kept current.
func TestEarlier(t *testing.T) {
	w := small(t)
	w.post(w.document(finding(10)))
	since := w.head
	w.push(smallFiles("ten\nELEVEN\n"))
	diff, err := review.ParseDiff([]byte(w.git("diff", "-U0", since, w.head) + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := w.document(finding(10), finding(11), finding(12))
	d.MarkEarlier(since, diff)
	if d.Results[0].Verdict = review.NotReproduced; !d.Results[0].Earlier || d.Results[1].Earlier || !d.Results[2].Earlier {
		t.Fatalf("%+v", d.Results)
	}
	if o := w.post(d); o.Created != 1 || o.Updated != 1 || len(w.ReviewComments(number)) != 2 {
		t.Errorf("%+v", o)
	}
	if s := d.RenderSummary(review.SummaryOptions{Units: summaryUnits}); !strings.Contains(s, "`"+since[:12]+"` was reviewed before") || !strings.Contains(s, "line 12 is wrong") {
		t.Errorf("summary:\n%s", s)
	}
}

// GitHub refuses a review for one bad position. Those outside its hunks are left out, and the
// summary has them.
func TestRefusedPosition(t *testing.T) {
	w := small(t)
	d := w.document(finding(10), finding(1), finding(11))
	o := w.post(d)
	if o.Created != 2 || o.Failure != nil || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "1 finding") || len(w.ReviewComments(number)) != 2 {
		t.Errorf("%+v", o)
	}
	if s := d.RenderSummary(review.SummaryOptions{Comments: o.Comments, Notes: o.Notes, Units: summaryUnits}); strings.Count(s, "](https://") != 2 || !strings.Contains(s, "line 1 is wrong") {
		t.Errorf("summary:\n%s", s)
	}
	w = small(t)
	w.InjectFault(githubtest.Fault{Op: "pulls/create-review", Kind: githubtest.Answer, Status: 422, Count: -1})
	if o := w.post(w.document(finding(10))); o.Created != 0 || o.Failure == nil || o.Failure.Code != "github.invalid" || len(o.Notes) != 1 {
		t.Errorf("refused for another reason: %+v", o)
	}
	if n := len(w.RequestsFor("pulls/create-review")); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Whatever happens to one request, at most one review is created, and after another run each
// finding has one comment.
func TestMisbehaviour(t *testing.T) {
	lanetest.SkipShort(t)
	for _, f := range []githubtest.Fault{
		{Kind: githubtest.ResetAfter}, {Kind: githubtest.ResetBefore}, {Kind: githubtest.AnswerAfter}, {Kind: githubtest.Answer}, {Kind: githubtest.Truncate},
		{Kind: githubtest.Cut}, {Kind: githubtest.SecondaryLimit, Delay: time.Second}, {Kind: githubtest.PrimaryLimit, Delay: 10 * time.Second},
		{Kind: githubtest.ResetBefore, Count: 3}, {Kind: githubtest.PrimaryLimit, Delay: time.Hour},
	} {
		for _, op := range []string{"pulls/create-review", "pulls/list-review-comments", "pulls/update-review-comment", "pulls/get", "graphql"} {
			w := small(t)
			w.mayResolve()
			d := w.document(finding(10), finding(11))
			gone := d
			gone.Results = append([]review.Result{}, d.Results...)
			gone.Results[1].Verdict = review.NotReproduced
			f.Op = op
			if op == "pulls/update-review-comment" || op == "graphql" {
				w.post(d)
				d = gone
			}
			w.InjectFault(f)
			o := w.post(d)
			if len(w.ReviewComments(number))%2 != 0 {
				t.Errorf("%+v: half a review", f)
			}
			w.RemoveFaults()
			again := w.post(d)
			w.once(d)
			if again.Failure != nil || len(w.Reviews(number)) != 1 || o.Failure == nil && again.Created+again.Updated != 0 {
				t.Errorf("%+v: %+v, then %+v, %d reviews", f, o, again, len(w.Reviews(number)))
			}
			if c := w.ReviewComments(number)[1]; (d.Results[1].Verdict == review.NotReproduced) != (c.ResolvedBy != "") || strings.Contains(c.Body, "pending") {
				t.Errorf("%+v: %+v", f, c)
			}
		}
	}
}

// A job that is killed before or after any of its requests leaves a whole review or none, and the
// next run completes it.
func TestKilled(t *testing.T) {
	lanetest.SkipShort(t)
	for after := range 10 {
		for _, done := range []bool{false, true} {
			w := small(t)
			w.mayResolve()
			d := w.document(finding(10), finding(11))
			w.post(w.document(finding(11)))
			d.Results[1].Verdict = review.NotReproduced
			ctx, cancel := context.WithCancel(t.Context())
			post.Post(ctx, w.options(&killer{after: after, done: done, cancel: cancel}), d)
			cancel()
			if o := w.post(d); o.Failure != nil {
				t.Errorf("after %d: %+v", after, o)
			}
			w.once(d)
			if last := w.ReviewComments(number)[0]; !strings.Contains(last.Body, "No longer") || last.ResolvedBy == "" || len(w.Reviews(number)) != 2 {
				t.Errorf("after %d: %+v, %d reviews", after, last, len(w.Reviews(number)))
			}
		}
	}
}

// A killer ends the job before a request, or after GitHub has executed it.
type killer struct {
	after  int
	done   bool
	cancel func()
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.after--
	if k.after >= 0 {
		return http.DefaultTransport.RoundTrip(r)
	}
	defer k.cancel()
	if k.done {
		if resp, err := http.DefaultTransport.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
			resp.Body.Close()
		}
	}
	return nil, context.Canceled
}

// Jobs that post at the same time leave one comment for each finding, and its thread resolved.
func TestTogether(t *testing.T) {
	lanetest.SkipShort(t)
	for range 5 {
		w := small(t)
		w.mayResolve()
		d := w.document(finding(10), finding(11), finding(12))
		w.post(w.document(finding(12)))
		d.Results[2].Verdict = review.NotReproduced
		var jobs sync.WaitGroup
		for range 3 {
			jobs.Go(func() {
				o := w.options(nil)
				o.Sleep, o.Settle = nil, 300*time.Millisecond
				if out := post.Post(t.Context(), o, d); out.Failure != nil {
					t.Errorf("%+v", out.Failure)
				}
			})
		}
		jobs.Wait()
		w.once(d)
		if c := w.ReviewComments(number)[0]; c.ResolvedBy == "" {
			t.Errorf("%+v", c)
		}
	}
}

// A marker of anyone else has no effect, nor one that is not the first line. A token that cannot
// write posts nothing and says which permission is missing.
func TestNotOurs(t *testing.T) {
	w := small(t)
	d := w.document(finding(10))
	line := fmt.Sprintf("<!-- fumehood:finding v1 %s %s verified -->", d.Results[0].ClaimKey(), w.head)
	theirs := w.AddReviewComment(number, "octocat", line+"\nfixed", "f", 10)
	w.AddReviewComment(number, githubtest.ActionsBot, "> "+line, "f", 10)
	w.AddReviewComment(number, githubtest.ActionsBot, "x\n"+line, "f", 10)
	if o := w.post(d); o.Created != 1 || o.Failure != nil {
		t.Errorf("%+v", o)
	}
	d.Results[0].Verdict = review.NotReproduced
	w.post(d)
	for _, c := range w.ReviewComments(number) {
		if c.ID == theirs && c.Edits > 0 {
			t.Error("a comment of another author was edited")
		}
	}
	w = small(t)
	w.AddWorkflowToken(secret, "contents:read", "pull-requests:read")
	if o := w.post(w.document(finding(10))); o.Failure == nil || o.Failure.Code != "github.permission" || !strings.Contains(o.Failure.Hint, "pull-requests: write") {
		t.Errorf("%+v", o.Failure)
	}
	w = small(t)
	w.ChangePullRequest(number, func(pr *githubtest.PR) { pr.Locked = true })
	if o := w.post(w.document(finding(10))); o.Failure == nil || o.Failure.Code != "github.locked" {
		t.Errorf("%+v", o.Failure)
	}
}

// More findings than a review may have are in the summary, and so is one that is there twice.
func TestMany(t *testing.T) {
	w := newTown(t, nil, map[string]string{"f": numbered(80)})
	var list []proposal.ReviewFinding
	for i := range 70 {
		list = append(list, finding(i+1))
	}
	d := w.document(append(list, list[0])...)
	o := w.post(d)
	if o.Created != post.MaxComments || len(o.Notes) != 1 || !strings.HasPrefix(o.Notes[0], "20 more findings") {
		t.Errorf("%+v", o.Notes)
	}
	if s := d.RenderSummary(review.SummaryOptions{Comments: o.Comments, Notes: o.Notes, Units: summaryUnits}); len(s) > summaryUnits || !strings.Contains(s, "71 verified findings") {
		t.Errorf("%d bytes: %.300s", len(s), s)
	}
}
