// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

// list responds with one page of comments; next is the Link's target, "" for none.
func list(next string, ids ...int64) step {
	var items []string
	for _, id := range ids {
		items = append(items, commentJSON(id))
	}
	link := ""
	if next != "" {
		link = "<" + next + `>; rel="next"`
	}
	return say(200, "["+strings.Join(items, ",")+"]", "Link", link)
}

func TestComments(t *testing.T) {
	const at = "https://api.github.com/repositories/1/issues/2/comments?per_page=100&page="
	tests := []struct {
		name  string
		steps []step
		ids   []int64
		wrong string // in the error
	}{
		{"none", []step{list("")}, nil, ""},
		{"one page", []step{list("", 1, 2)}, []int64{1, 2}, ""},
		{"three pages", []step{list(at+"2", 1, 2), list(at+"3", 3), list("", 4)}, []int64{1, 2, 3, 4}, ""},
		{"a page shift shows one twice", []step{list(at+"2", 1, 2), list("", 2, 3)}, []int64{1, 2, 3}, ""},
		{"a page twice", []step{list(at+"2", 1, 2), list("", 1, 2)}, []int64{1, 2}, ""},
		{"another order", []step{list(at+"2", 9, 3), list("", 5, 1)}, []int64{1, 3, 5, 9}, ""},
		{"a failure in the middle", []step{list(at+"2", 1), say(502, ""), list("", 2)}, []int64{1, 2}, ""},
		{"the link is another host's", []step{list("https://evil.example/x?page=2", 1), list("", 2)}, []int64{1, 2}, ""},
		{"a loop", []step{list(at+"2", 1), list(at+"2", 2)}, nil, "page 2 is followed by"},
		{"back to the first", []step{list(at+"2", 1), list(at+"1", 2)}, nil, "page 2 is followed by"},
		{"the first again", []step{list(at+"1", 1)}, nil, "page 1 is followed by"},
		{"a jump", []step{list(at+"3", 1), list("", 2)}, nil, "page 1 is followed by"},
		{"a cursor", []step{list("https://api.github.com/x?after=abc", 1), list("", 2)}, nil, "page 1 is followed by"},
		{"no number", []step{list("https://api.github.com/x?page=two", 1), list("", 2)}, nil, "page 1 is followed by"},
		{"no URL", []step{list("::", 1), list("", 2)}, nil, "page 1 is followed by"},
		{"not a list", []step{say(200, `{"message":"hello"}`)}, nil, "cannot unmarshal"},
		{"null", []step{say(200, "null")}, nil, "not a JSON document"},
		{"no content", []step{say(204, "")}, nil, "unexpected status"},
		{"created", []step{say(201, "[]")}, nil, "unexpected status"},
		{"not modified, unasked", []step{say(304, "")}, nil, "unexpected status"},
		{"nothing in it", []step{say(200, "[null]")}, nil, "without an id"},
		{"without an id", []step{say(200, `[{"body":"x"}]`)}, nil, "without an id"},
		{"missing right on page two", []step{list(at+"2", 1), say(404, `{}`)}, nil, "404"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, test.steps...).URL)
			comments, err := c.Comments(context.Background(), 2)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) || comments != nil {
					t.Errorf("got %v, %v, want %q", comments, err, test.wrong)
				}
				return
			}
			var ids []int64
			for _, comment := range comments {
				ids = append(ids, comment.ID)
			}
			if diff := cmp.Diff(test.ids, ids); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// Requests have only the parameters that GitHub documents for one issue's comments.
func TestCommentsAskForPages(t *testing.T) {
	s := play(t, list("https://x.example/?page=2", 1), list("", 2))
	c, _ := client(t, s.URL)
	if _, err := c.Comments(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	for i, r := range s.requests() {
		want := "/repos/Codertocat/Hello-World/issues/2/comments?page=" + strconv.Itoa(i+1) + "&per_page=100"
		if got := r.URL.String(); got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
}

// A list without an end is an error after a bounded number of requests.
func TestEndlessPages(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("page"))
		w.Header().Set("Link", fmt.Sprintf(`<http://%s/x?page=%d>; rel="next", <http://%s/x?page=100000>; rel="last"`, r.Host, n+1, r.Host))
		fmt.Fprintf(w, "[%s]", commentJSON(int64(n)))
	})
	c, _ := client(t, s.URL)
	comments, err := c.Comments(context.Background(), 2)
	wantError(t, err, Malformed, "github.malformed")
	if n := len(s.requests()); n != maxItems/pageSize || comments != nil {
		t.Errorf("sent %d requests and got %d comments", n, len(comments))
	}
}

// Comments of maximum length, which an attacker may write to hide the bot's comment.
func TestLongPages(t *testing.T) {
	lanetest.SkipShort(t)
	const count = 330
	long := strings.Repeat(`\u003c`, 65536)
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		if page*size < count {
			w.Header().Set("Link", fmt.Sprintf(`<http://x.example/?page=%d>; rel="next"`, page+1))
		}
		separator := "["
		for i := (page - 1) * size; i < min(page*size, count); i++ {
			body := "short"
			if i >= 100 && i < 130 {
				body = long
			}
			fmt.Fprintf(w, `%s{"id":%d,"body":"%s"}`, separator, i+1, body)
			separator = ","
		}
		io.WriteString(w, "]")
	})
	c, k := client(t, s.URL)
	comments, err := c.Comments(context.Background(), 2)
	if err != nil || len(comments) != count || len(k.sleeps) != 0 {
		t.Fatalf("got %d comments, %v, slept %v", len(comments), err, k.sleeps)
	}
	for i, comment := range comments {
		if comment.ID != int64(i+1) || (len(comment.Body) == 65536) != (i >= 100 && i < 130) {
			t.Fatalf("comment %d has id %d and %d bytes", i, comment.ID, len(comment.Body))
		}
	}
	if n := len(s.requests()); n != 1+1+23 {
		t.Errorf("sent %d requests", n)
	}
}

func FuzzLink(f *testing.F) {
	for _, seed := range []string{
		"", `<https://api.github.com/x?page=2>; rel="next"`, `<https://api.github.com/x?page=3>; rel="next"`,
		`<https://api.github.com/x?after=q>; rel="next"`, `<::>; rel="next"`, `rel="next"`, `<x?page=2>; rel="prev"`,
		`<x?page=2>; rel="next", <x?page=5>; rel="next"`,
	} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, link string, n int) {
		resp := linked(link)
		more, err := nextPage(resp, n)
		if more && (err != nil || resp.NextPage != n+1) {
			t.Errorf("page %d goes on by %q", n, link)
		}
		if !more && err == nil && strings.Contains(link, `rel="next"`) {
			t.Errorf("%q ends the list", link)
		}
	})
}
