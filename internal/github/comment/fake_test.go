// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const prNumber = 7

var (
	bot    = github.Author{Login: "github-actions[bot]", ID: 41898282, Type: "Bot"}
	person = github.Author{Login: "octocat", ID: 583231, Type: "User"}

	head1 = strings.Repeat("1", 40)
	head2 = strings.Repeat("2", 40)
	head3 = strings.Repeat("3", 40)
)

// conversation is a pull request in memory. It checks the requests and can be made
// to misbehave.
type conversation struct {
	pr       github.PullRequest
	comments []github.Comment
	lastID   int64
	token    github.Author // the account that writes
	ops      []string
	wrong    []string // requests that no Keeper may make
	fail     map[string][]failure
}

// failure is an error for the next request of an operation, before or after its
// effect; nil lets the request pass.
type failure struct {
	err   error
	after bool
	hook  func()
}

func newConversation() *conversation {
	return &conversation{
		pr:     github.PullRequest{Number: prNumber, State: "open", Head: github.Ref{SHA: head1}},
		lastID: 1000, token: bot, fail: map[string][]failure{},
	}
}

func (c *conversation) post(author github.Author, body string) int64 {
	c.lastID++
	c.comments = append(c.comments, github.Comment{
		ID: c.lastID, Author: author, Body: body, URL: fmt.Sprintf("https://github.example/c/%d", c.lastID),
	})
	return c.lastID
}

func (c *conversation) index(id int64) int {
	return slices.IndexFunc(c.comments, func(x github.Comment) bool { return x.ID == id })
}

func (c *conversation) remove(id int64) {
	if i := c.index(id); i >= 0 {
		c.comments = slices.Delete(c.comments, i, i+1)
	}
}

func (c *conversation) by(author github.Author) []github.Comment {
	var list []github.Comment
	for _, x := range c.comments {
		if x.Author.ID == author.ID && hasMarker(x.Body) {
			list = append(list, x)
		}
	}
	return list
}

// do runs one operation with its planned failure.
func (c *conversation) do(op string, effect func() error) error {
	c.ops = append(c.ops, op)
	var f failure
	if planned := c.fail[op]; len(planned) > 0 {
		f, c.fail[op] = planned[0], planned[1:]
	}
	if f.hook != nil {
		f.hook()
	}
	if f.err != nil && !f.after {
		return f.err
	}
	if err := effect(); err != nil {
		return err
	}
	return f.err
}

func refusal(kind github.Kind) error {
	return &proposal.StopError{
		Code: "github." + strings.ReplaceAll(string(kind), " ", "-"), Message: "cannot do it on GitHub",
		Hint: "a hint", Err: &github.Error{Kind: kind},
	}
}

func (c *conversation) PullRequest(_ context.Context, number int) (pr github.PullRequest, err error) {
	err = c.do("pull", func() error {
		if number != prNumber {
			c.wrong = append(c.wrong, fmt.Sprintf("pull request %d", number))
		}
		pr = c.pr
		return nil
	})
	return pr, err
}

func (c *conversation) Comments(_ context.Context, number int) (list []github.Comment, err error) {
	err = c.do("list", func() error {
		list = slices.Clone(c.comments)
		return nil
	})
	return list, err
}

func (c *conversation) Comment(_ context.Context, id int64) (x github.Comment, err error) {
	err = c.do("read", func() error {
		i := c.index(id)
		if i < 0 {
			return refusal(github.NotFound)
		}
		x = c.comments[i]
		return nil
	})
	return x, err
}

func (c *conversation) CreateComment(_ context.Context, number int, body string) (x github.Comment, err error) {
	err = c.do("create", func() error {
		if err := c.checkBody(body); err != nil {
			return err
		}
		x = c.comments[c.index(c.post(c.token, body))]
		return nil
	})
	return x, err
}

func (c *conversation) UpdateComment(_ context.Context, id int64, body string) (x github.Comment, err error) {
	err = c.do("update", func() error {
		i := c.index(id)
		if i < 0 {
			return refusal(github.NotFound)
		}
		if c.comments[i].Author != c.token {
			c.wrong = append(c.wrong, "update of somebody else's comment")
			return refusal(github.Forbidden)
		}
		if err := c.checkBody(body); err != nil {
			return err
		}
		c.comments[i].Body = body
		x = c.comments[i]
		return nil
	})
	return x, err
}

func (c *conversation) DeleteComment(_ context.Context, id int64) error {
	return c.do("delete", func() error {
		i := c.index(id)
		if i < 0 {
			return refusal(github.NotFound)
		}
		if c.comments[i].Author != c.token {
			c.wrong = append(c.wrong, "deletion of somebody else's comment")
			return refusal(github.Forbidden)
		}
		c.remove(id)
		return nil
	})
}

// checkBody checks a body against the format and GitHub's limit.
func (c *conversation) checkBody(body string) error {
	lines := strings.Split(body, "\n")
	if len(lines) < 4 || lines[0] != Marker || lines[2] != noticeMark {
		c.wrong = append(c.wrong, fmt.Sprintf("body %.200q", body))
	} else if _, err := decodeState(lines[1]); err != nil {
		c.wrong = append(c.wrong, fmt.Sprintf("state %q", lines[1]))
	}
	if n := strings.Count(body, "\n"+resultsMark); n != 1 {
		c.wrong = append(c.wrong, fmt.Sprintf("%d results sections", n))
	}
	if text.CountUnits(body) > 65536 {
		c.wrong = append(c.wrong, "a body above GitHub's limit")
		return refusal(github.Invalid)
	}
	return nil
}

// keeper returns a Keeper whose sleeps take no time and are counted.
func (c *conversation) keeper(t testing.TB) *Keeper {
	t.Helper()
	k, err := New(Options{
		Client: c, Author: bot, PR: prNumber,
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			c.ops = append(c.ops, "settle")
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if len(c.wrong) > 0 {
			t.Errorf("sent to GitHub: %q", c.wrong)
		}
	})
	return k
}

// unit is the source of results.
var unit = Source{Workflow: "ci.yml", Job: "unit"}

// results returns the results of a run whose body is its own name.
func results(head string, run int64, attempt int) Results {
	return Results{
		Section: Section{Source: unit, Mark: "✅", Title: ": 1 succeeded",
			Result: Result{Stamp: Stamp{Head: head, RunID: run, Attempt: attempt}, Conclusion: "success", Totals: proposal.Totals{Proposed: 1, Allowed: 1, Succeeded: 1}}},
		Body: func(Room) string { return fmt.Sprintf("results of run %d.%d", run, attempt) },
	}
}

// of returns r as the results of another source.
func (r Results) of(source Source) Results { r.Source = source; return r }

// red returns r as failed.
func (r Results) red() Results {
	r.Conclusion, r.Mark, r.Title = "failure", "❌", ": 1 failed"
	r.Totals = proposal.Totals{Proposed: 1, Allowed: 1, Failed: 1}
	return r
}

// at returns r as of a run that started at a time.
func (r Results) at(started int64) Results { r.Started = started; return r }

// texts are what the sections show.
func (s sheet) texts() string {
	var list []string
	for _, x := range s.Sections {
		list = append(list, x.text)
	}
	return strings.Join(list, "\n")
}

func (s sheet) bodyOf(t testing.TB, head string) string {
	t.Helper()
	body, err := layout{limit: MaxBody}.formatBody(s, head)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func answer(id int64) Notice { return Notice{Comment: id, Text: fmt.Sprintf("answer to %d", id)} }

// only returns fumehood's comment, of which there must be exactly one.
func (c *conversation) only(t testing.TB) sheet {
	t.Helper()
	ours := c.by(c.token)
	if len(ours) != 1 {
		t.Fatalf("%d comments of ours, want 1", len(ours))
	}
	return readSheet(ours[0].Body)
}
