// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const baseSHA = "f95f852bd8fca8fcc58a9a2d6c842781e32a215e"

// pullJSON is pull request 2 as GitHub returns it, reduced to the fields that are
// read. headRepo is null if the fork was deleted.
func pullJSON(headSHA, headRepo string) string {
	return `{"number":2,"state":"open","draft":true,"locked":true,"merged":false,"title":"Update the README",
		"html_url":"https://github.com/Codertocat/Hello-World/pull/2","user":{"login":"Codertocat","id":21031067,"type":"User"},
		"author_association":"MEMBER","labels":[{"name":"b"},{"name":"a"}],
		"head":{"label":"octocat:changes","ref":"changes","sha":"` + headSHA + `","user":null,"repo":` + headRepo + `},
		"base":{"ref":"master","sha":"` + baseSHA + `","repo":{"id":186853002,"full_name":"Codertocat/Hello-World"}}}`
}

func pullWith(head Ref) PullRequest {
	return PullRequest{
		Number: 2, State: "open", Draft: true, Locked: true, Title: "Update the README",
		HTMLURL: "https://github.com/Codertocat/Hello-World/pull/2",
		Author:  Author{"Codertocat", 21031067, "User"},
		Labels:  []string{"b", "a"}, Association: "MEMBER",
		Head: head, Base: Ref{baseSHA, "master", "Codertocat/Hello-World", 186853002},
	}
}

func TestPullRequest(t *testing.T) {
	sha256 := strings.Repeat("ab", 32)
	tests := []struct {
		name, body string
		want       PullRequest
	}{
		{"of the same repository", pullJSON(sha, `{"id":186853002,"full_name":"Codertocat/Hello-World"}`),
			pullWith(Ref{sha, "changes", "Codertocat/Hello-World", 186853002})},
		{"of a fork", pullJSON(sha, `{"id":999,"full_name":"octocat/Hello-World"}`),
			pullWith(Ref{sha, "changes", "octocat/Hello-World", 999})},
		{"whose fork is gone", pullJSON(sha, "null"), pullWith(Ref{sha, "changes", "", 0})},
		{"SHA-256", pullJSON(sha256, "null"), pullWith(Ref{sha256, "changes", "", 0})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, say(200, test.body)).URL)
			pull, err := c.PullRequest(context.Background(), 2)
			if diff := cmp.Diff(test.want, pull); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestMalformedPullRequest(t *testing.T) {
	whole := pullJSON(sha, "null")
	tests := []struct{ name, body, wrong string }{
		{"another", strings.Replace(whole, `"number":2`, `"number":3`, 1), "requested pull request 2, got 3"},
		{"nothing", "{}", "requested pull request 2, got 0"},
		{"state", strings.Replace(whole, "open", "ajar", 1), `that is "ajar"`},
		{"short commit id", pullJSON(sha[:7], "null"), "full commit ids"},
		{"upper-case commit id", pullJSON(strings.ToUpper(sha), "null"), "full commit ids"},
		{"a branch for a commit id", pullJSON(strings.Repeat("main", 10), "null"), "full commit ids"},
		{"no base", strings.Replace(whole, `"full_name":"Codertocat/Hello-World"`, `"name":"x"`, 1), "without a repository"},
		{"a list", "[" + whole + "]", "cannot unmarshal"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, say(200, test.body)).URL)
			pull, err := c.PullRequest(context.Background(), 2)
			if e, _ := wantError(t, err, Malformed, "github.malformed"); !strings.Contains(e.Message, test.wrong) {
				t.Errorf("got %v, want %q", e, test.wrong)
			}
			if !cmp.Equal(pull, PullRequest{}) {
				t.Errorf("got %+v beside the error", pull)
			}
		})
	}
}

func TestPullRequestsByHead(t *testing.T) {
	one := strings.Replace(pullJSON(sha, "null"), `"ref":"changes"`, `"ref":"a&b=c/#?é"`, 1)
	two := strings.Replace(one, `"number":2`, `"number":9`, 1)
	unasked := strings.Replace(pullJSON(sha, "null"), `"number":2`, `"number":5`, 1)
	s := play(t, say(200, "["+two+","+unasked+"]", "Link", `<https://x.example/?page=2>; rel="next"`), say(200, "["+two+","+one+"]"))
	c, _ := client(t, s.URL)
	const branch = "a&b=c/#?é"
	pulls, err := c.PullRequestsByHead(context.Background(), "octocat", branch)
	if err != nil || len(pulls) != 2 || pulls[0].Number != 9 || pulls[1].Number != 2 {
		t.Errorf("got %v, %v", pulls, err)
	}
	query := s.requests()[0].URL.Query()
	if query.Get("head") != "octocat:"+branch || query.Get("state") != "all" || len(query) != 4 {
		t.Errorf("asked for %v", query)
	}
}

func TestMalformedPullRequests(t *testing.T) {
	c, _ := client(t, play(t, say(200, "[null]")).URL)
	_, err := c.PullRequestsByHead(context.Background(), "octocat", "changes")
	wantError(t, err, Malformed, "github.malformed")
	for _, head := range [][2]string{{"", "changes"}, {"octocat", ""}} {
		_, err = c.PullRequestsByHead(context.Background(), head[0], head[1])
		wantError(t, err, Invalid, "github.invalid")
	}
}

func TestFiles(t *testing.T) {
	tests := []struct {
		name     string
		count    int
		complete bool
	}{
		{"none", 0, true}, {"one", 1, true}, {"a full page", 100, true}, {"many", 2999, true}, {"all that GitHub lists", 3000, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				var items []string
				for i := (page - 1) * 100; i < min(page*100, test.count); i++ {
					items = append(items, fmt.Sprintf(`{"filename":"f%d","previous_filename":"g%d","status":"renamed"}`, i, i))
				}
				if page*100 < test.count {
					w.Header().Set("Link", fmt.Sprintf(`<https://x.example/?page=%d>; rel="next"`, page+1))
				}
				fmt.Fprintf(w, "[%s]", strings.Join(items, ","))
			})
			c, _ := client(t, s.URL)
			files, complete, err := c.Files(context.Background(), 2)
			if err != nil || complete != test.complete || len(files) != test.count {
				t.Fatalf("got %d files, complete %v, %v", len(files), complete, err)
			}
			for i, f := range files {
				if want := (File{Path: fmt.Sprintf("f%d", i), Previous: fmt.Sprintf("g%d", i), Status: "renamed"}); f != want {
					t.Fatalf("got %v, want %v", f, want)
				}
			}
		})
	}
	c, _ := client(t, play(t, say(200, `[{"status":"added"}]`)).URL)
	files, complete, err := c.Files(context.Background(), 2)
	wantError(t, err, Malformed, "github.malformed")
	if complete || files != nil {
		t.Errorf("got %v, complete %v beside the error", files, complete)
	}
}

// An answer about another branch, or without a commit, is not one.
func TestMalformedBranch(t *testing.T) {
	for name, body := range map[string]string{
		"another":    `{"name":"main","commit":{"sha":"` + sha + `"}}`,
		"no commit":  `{"name":"master"}`,
		"a short id": `{"name":"master","commit":{"sha":"` + sha[:7] + `"}}`,
	} {
		c, _ := client(t, play(t, say(200, `{"default_branch":"master"}`), say(200, body)).URL)
		branch, err := c.DefaultBranch(context.Background())
		if wantError(t, err, Malformed, "github.malformed"); branch != (Branch{}) {
			t.Errorf("%s: got %+v beside the error", name, branch)
		}
	}
	c, _ := client(t, play(t, say(200, `{"full_name":"x/y"}`)).URL)
	_, err := c.DefaultBranch(context.Background())
	wantError(t, err, Malformed, "github.malformed")
}
