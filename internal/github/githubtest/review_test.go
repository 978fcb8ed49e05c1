// SPDX-License-Identifier: Apache-2.0

package githubtest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/githubtest"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// reviewed is a pull request in a real repository: f has 30 lines, of which the head changes
// line 10 and adds a line after 20.
func reviewed(t *testing.T) (s *githubtest.Server, commit func(text string) string) {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "home.git")
	run := func(args ...string) string {
		t.Helper()
		out, err := git(t, t.TempDir(), append([]string{"--git-dir=" + bare}, args...)...)
		if err != nil {
			t.Fatalf("git %q: %s", args, out)
		}
		return out
	}
	run("init", "-q", "--bare", "-b", "master", bare)
	parent := ""
	commit = func(text string) string {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("read-tree", "--empty")
		run("update-index", "--add", "--cacheinfo", "100644,"+run("hash-object", "-w", file)+",f")
		args := []string{"commit-tree", run("write-tree"), "-m", "c"}
		if parent != "" {
			args = append(args, "-p", parent)
		}
		parent = run(args...)
		return parent
	}
	base, head := commit(numbered(30)), commit(strings.Replace(strings.Replace(numbered(30), "10\n", "ten\n", 1), "20\n", "20\nnew\n", 1))
	run("update-ref", "refs/heads/master", base)
	s = githubtest.New(t, githubtest.Options{Git: bare})
	s.AddWorkflowToken(token, all...)
	s.AddPR(githubtest.PR{Number: 2, Head: githubtest.Ref{SHA: head}, Base: githubtest.Ref{SHA: base}})
	return s, commit
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// A review is created whole, or refused because of one position that the diff does not have.
func TestReviewPositions(t *testing.T) {
	s, _ := reviewed(t)
	for _, c := range []struct {
		comment string
		words   string // "" for success
	}{
		{`{"path":"f","line":10}`, ""},
		{`{"path":"f","line":7}`, ""},
		{`{"path":"f","line":6}`, "line must be part of the diff"},
		{`{"path":"f","line":14}`, "line must be part of the diff"},
		{`{"path":"f","line":21}`, ""},
		{`{"path":"f","line":24}`, ""},
		{`{"path":"f","line":25}`, "line must be part of the diff"},
		{`{"path":"f","line":10,"side":"LEFT"}`, ""},
		{`{"path":"f","line":24,"side":"LEFT"}`, "line must be part of the diff"},
		{`{"path":"f","line":11,"start_line":9,"start_side":"RIGHT"}`, ""},
		{`{"path":"f","line":21,"start_line":10,"start_side":"RIGHT"}`, "same hunk"},
		{`{"path":"f","line":10,"start_line":10,"start_side":"RIGHT"}`, "precede"},
		{`{"path":"g","line":10}`, "Path could not be resolved"},
		{`{"path":"f","line":0}`, "line must be part of the diff"},
		{`{"path":"f","line":10,"body":" "}`, "blank"},
	} {
		before := len(s.ReviewComments(2))
		comment := c.comment
		if !strings.Contains(comment, "body") {
			comment = strings.Replace(comment, "{", `{"body":"b",`, 1)
		}
		a := ask(t, s, "POST", home+"/pulls/2/reviews", token, `{"event":"COMMENT","body":"b","comments":[{"path":"f","line":10,"body":"good"},`+comment+`]}`)
		added := len(s.ReviewComments(2)) - before
		if c.words == "" && (a.status != 200 || added != 2) || c.words != "" && (a.status != 422 || added != 0 || !strings.Contains(a.body, c.words)) {
			t.Errorf("%s: %d, %d added: %s", c.comment, a.status, added, a.body)
		}
	}
}

// A review without an event waits, for its author's eyes only, and blocks another one. A review
// needs a body and a commit of the pull request.
func TestReviewStates(t *testing.T) {
	lanetest.SkipShort(t)
	s, _ := reviewed(t)
	post := func(body string) said { return ask(t, s, "POST", home+"/pulls/2/reviews", token, body) }
	for body, words := range map[string]string{
		`{"event":"COMMENT"}`: "blank",
		`{"event":"COMMENT","body":"b","commit_id":"` + head + `"}`: "not part of",
		`{"event":"APPROVE","body":"b"}`:                            "not permitted",
	} {
		if a := post(body); a.status != 422 || !strings.Contains(a.body, words) {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	if a := post(`{"comments":[{"path":"f","line":10,"body":"b"}]}`); a.status != 200 || !strings.Contains(a.body, "PENDING") {
		t.Fatal(a.body)
	}
	if a := ask(t, s, "GET", home+"/pulls/2/comments", token, ""); strings.TrimSpace(a.body) != "[]" {
		t.Errorf("a pending comment is listed: %s", a.body)
	}
	if a := post(`{"event":"COMMENT","body":"b"}`); a.status != 422 || !strings.Contains(a.body, "one pending") {
		t.Errorf("two pending: %d %s", a.status, a.body)
	}
}

// A comment follows its line while the head moves, and is outdated when the line has changed or
// is no longer in the diff. Lists have pages.
func TestReviewCommentMoves(t *testing.T) {
	lanetest.SkipShort(t)
	s, commit := reviewed(t)
	for range 120 {
		s.AddReviewComment(2, "octocat", "b", "f", 10)
	}
	list := func() (lines []int) {
		t.Helper()
		var page []struct{ Line int }
		a := ask(t, s, "GET", home+"/pulls/2/comments?per_page=100&page=2", token, "")
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page) != 20 {
			t.Fatalf("%v: %.300s", err, a.body)
		}
		for _, c := range page[:1] {
			lines = append(lines, c.Line)
		}
		return lines
	}
	for text, want := range map[string]int{
		"0\n" + strings.Replace(numbered(30), "10\n", "ten\n", 1): 11,
		strings.Replace(numbered(30), "10\n", "TEN\n", 1):         0,
		numbered(30): 0,
	} {
		s.MoveHead(2, commit(text))
		if got := list(); got[0] != want {
			t.Errorf("line %d, want %d", got[0], want)
		}
	}
}
