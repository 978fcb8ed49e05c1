// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestContext holds what rules get to know of a pull request, and that its files are asked for only
// if a rule reads them, and are complete only for the commit that runs.
func TestContext(t *testing.T) {
	head, other, base := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
	for _, c := range []struct {
		name, rule, head string
		asked            int
		want             proposal.ContextChanged
	}{
		{"not read", `input.context.draft`, head, 0, proposal.ContextChanged{}},
		{"read", `"x" in input.context.changed.paths`, head, 2, proposal.ContextChanged{Paths: []string{"a.go", "b.go", "old.go"}, Complete: true}},
		{"read, and the head moved", `count(input.context) == 0`, other, 2, proposal.ContextChanged{}},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if strings.HasSuffix(r.URL.Path, "/pulls/7/files") {
				fmt.Fprint(w, `[{"filename":"b.go","status":"modified"},{"filename":"a.go","previous_filename":"old.go","status":"renamed"}]`)
				return
			}
			fmt.Fprintf(w, `{"number":7,"state":"open","head":{"sha":%q},"base":{"sha":%q,"repo":{"id":1,"full_name":"mona/app"}}}`, c.head, base)
		}))
		client, err := github.New(github.Options{BaseURL: server.URL, Repository: "mona/app", Token: "token"})
		if err != nil {
			t.Fatal(err)
		}
		j := &Job{gh: client, runner: action.Runner{Repository: "mona/app"}, started: time.Date(2027, 3, 1, 9, 30, 0, 0, time.UTC),
			event: action.Event{Name: "issue_comment", Number: 7, SenderLogin: "editor", Comment: &action.Comment{AuthorLogin: "maintainer"},
				Repository: action.Repository{DefaultBranch: "main", Visibility: "public"}}}
		rules := "package fumehood.command\n\ndeny contains {} if " + c.rule + "\n"
		b := &Base{job: j, configured: &baseConfig{}, layers: []layer{{policy: policy.Layer{Files: []policy.File{{Name: "a.rego", Content: []byte(rules)}}}}}}
		got, err := b.contextOf(t.Context(), Task{Fork: "evil/app",
			Request: Request{PR: 7, Head: head, Base: base, HeadRef: "fix\u202e" + strings.Repeat("x", 300), BaseRef: "main"},
			PR:      github.PullRequest{Number: 7, Draft: true, Author: github.Author{Login: "evil"}, Labels: []string{"b"}, Association: "NONE"}})
		server.Close()
		if len(got.HeadRef) > 300 || strings.ContainsRune(got.HeadRef, '\u202e') {
			t.Errorf("%s: head_ref %q", c.name, got.HeadRef)
		}
		got.HeadRef = ""
		want := proposal.Context{Known: true, Repository: "mona/app", Visibility: "public", DefaultBranch: "main", BaseRef: "main", Event: "issue_comment",
			PR: 7, Draft: true, Fork: true, Labels: []string{"b"}, Author: "evil", Association: "NONE", Requester: "maintainer", Changed: c.want,
			Started: "2027-03-01T09:30:00Z"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || asked != c.asked {
			t.Errorf("%s: %d requests, %v: %s", c.name, asked, err, diff)
		}
	}
}
