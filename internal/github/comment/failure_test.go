// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestFailures(t *testing.T) {
	deleted := func(c *conversation) failure { return failure{hook: func() { c.remove(c.comments[0].ID) }} }
	times := func(n int, kind github.Kind) func(*conversation) []failure {
		return func(*conversation) []failure { return slices.Repeat([]failure{{err: refusal(kind)}}, n) }
	}
	always := func(kind github.Kind) func(*conversation) []failure { return times(100, kind) }
	once := func(kind github.Kind) func(*conversation) []failure { return times(1, kind) }
	after := func(kind github.Kind) func(*conversation) []failure {
		return func(*conversation) []failure { return []failure{{err: refusal(kind), after: true}} }
	}
	tests := []struct {
		name  string
		fresh bool // no comment yet
		op    string
		fail  func(*conversation) []failure
		did   WriteStatus
		code  string
	}{
		{"locked, no comment yet", true, "create", always(github.Locked), Refused, "github.locked"},
		{"locked", false, "update", always(github.Locked), Refused, "github.locked"},
		{"no right to write", true, "create", always(github.Forbidden), Refused, "github.forbidden"},
		{"no right to read", true, "list", always(github.NotFound), Refused, "github.not-found"},
		{"no pull request", false, "pull", always(github.NotFound), Refused, "github.not-found"},
		{"rate limit", false, "update", always(github.RateLimited), Refused, "github.rate-limited"},
		{"rate limit while reading", false, "list", always(github.RateLimited), Refused, "github.rate-limited"},
		{"GitHub is down", false, "list", always(github.Unavailable), Refused, "github.unavailable"},
		{"GitHub is down for writes", false, "update", always(github.Unavailable), Refused, "github.unavailable"},
		{"GitHub is slow for half a minute", false, "update", times(10, github.Uncertain), Updated, ""},
		{"GitHub stumbles", false, "update", once(github.Unavailable), Updated, ""},
		{"created, then reset", true, "create", after(github.Uncertain), Posted, ""},
		{"reset, not created", true, "create", once(github.Uncertain), Posted, ""},
		{"updated, then reset", false, "update", after(github.Uncertain), Updated, ""},
		{"reset, not updated", false, "update", once(github.Uncertain), Updated, ""},
		{"resets without end", true, "create", always(github.Uncertain), Refused, "github.unavailable"},
		{"deleted before the write", false, "update", func(c *conversation) []failure { return []failure{deleted(c)} }, Posted, ""},
		{"deleted after the write", false, "read", func(c *conversation) []failure { return []failure{deleted(c)} }, Posted, ""},
		{"a replica that lags", true, "read", once(github.NotFound), Posted, ""},
		{"GitHub counts otherwise", false, "update", once(github.Invalid), Updated, ""},
		{"GitHub takes nothing", false, "update", always(github.Invalid), Refused, "github.invalid"},
		{"cannot look again", false, "read", func(*conversation) []failure { return []failure{{err: refusal(github.Unavailable)}} }, Updated, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newConversation()
			if !test.fresh {
				c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
			}
			c.fail[test.op] = test.fail(c)
			o := c.keeper(t).ReplaceResults(background, results(head1, 11, 1))
			if o.Did != test.did {
				t.Errorf("got %s (%+v), want %s", o.Did, o.Failure, test.did)
			}
			if (o.Did == Refused) != (o.Failure != nil) || o.Did == Refused && o.Failure.Code != test.code {
				t.Errorf("got %+v, want %q", o.Failure, test.code)
			}
			if o.Did != Refused {
				if s := c.only(t); s.texts() != "results of run 11.1" {
					t.Errorf("%q stands", s.texts())
				}
			} else if len(c.by(bot)) > 1 {
				t.Errorf("%d comments of ours", len(c.by(bot)))
			}
		})
	}
}

func TestUndeletableDuplicate(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
	c.post(bot, c.comments[0].Body)
	c.fail["delete"] = []failure{{err: refusal(github.Forbidden)}}
	if o := c.keeper(t).ReplaceResults(background, results(head1, 11, 1)); o.Did != Updated || o.Left != 1 {
		t.Errorf("got %+v", o)
	}
}

func TestContended(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
	old := c.comments[0].Body
	for range 100 { // another job that writes the same old text after every write
		c.fail["read"] = append(c.fail["read"], failure{hook: func() { c.comments[0].Body = old }})
	}
	o := c.keeper(t).ReplaceResults(background, results(head1, 11, 1))
	if o.Did != Refused || o.Failure.Code != "comment.contended" || !strings.Contains(o.Failure.Hint, "concurrency") {
		t.Errorf("got %+v, %+v", o, o.Failure)
	}
}

// TestSlow: requests take longer than Settle, so what was read is out of date and
// nothing is written.
func TestSlow(t *testing.T) {
	c := newConversation()
	c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
	k := c.keeper(t)
	now := time.Unix(1_800_000_000, 0)
	k.Now = func() time.Time { now = now.Add(3 * time.Second); return now }
	o := k.ReplaceResults(background, results(head1, 11, 1))
	if o.Did != Refused || o.Failure.Code != "github.unavailable" || c.only(t).newestStamp().RunID != 10 {
		t.Errorf("got %+v, %+v", o, o.Failure)
	}
}

func TestWriteIsBounded(t *testing.T) {
	lanetest.SkipShort(t)
	c := newConversation()
	k := c.keeper(t)
	k.Settle = 20 * time.Millisecond
	k.Now = time.Now
	k.Client = stuck{t, c, k.Settle}
	o := k.ReplaceResults(background, results(head1, 11, 1))
	if o.Did != Refused || o.Failure.Code != "github.unavailable" {
		t.Errorf("got %+v, %+v", o, o.Failure)
	}
}

// stuck is a GitHub that never answers a write. It checks that the write has a deadline.
type stuck struct {
	t *testing.T
	*conversation
	settle time.Duration
}

func (s stuck) CreateComment(ctx context.Context, _ int, _ string) (github.Comment, error) {
	if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > s.settle {
		s.t.Errorf("a write may take until %v", deadline)
	}
	<-ctx.Done()
	return github.Comment{}, &github.Error{Kind: github.Canceled, Err: ctx.Err()}
}

// TestRateLimit waits as long as GitHub asks for, unless that is too long.
func TestRateLimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tests := []struct {
		name string
		wait time.Duration
		did  WriteStatus
	}{
		{"a minute", time.Minute, Updated},
		{"an hour", time.Hour, Refused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newConversation()
			c.keeper(t).ReplaceResults(background, results(head1, 10, 1))
			c.fail["update"] = []failure{{err: &github.Error{Kind: github.RateLimited, Until: now.Add(test.wait)}}}
			var waited time.Duration
			k := c.keeper(t)
			k.Sleep = func(_ context.Context, d time.Duration) error { waited = max(waited, d); return nil }
			o := k.ReplaceResults(background, results(head1, 11, 1))
			if o.Did != test.did || (o.Did == Updated) != (waited == test.wait) {
				t.Errorf("got %+v after a wait of %v", o, waited)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	for _, op := range []string{"list", "pull", "create", "settle"} {
		t.Run(op, func(t *testing.T) {
			c := newConversation()
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			k := c.keeper(t)
			if op == "settle" {
				c.fail["create"] = []failure{{hook: cancel}}
			} else {
				c.fail[op] = []failure{{hook: cancel, err: context.Canceled}}
			}
			o := k.ReplaceResults(ctx, results(head1, 11, 1))
			if op == "settle" {
				if o.Did != Posted || c.only(t).newestStamp().RunID != 11 {
					t.Errorf("got %+v", o)
				}
			} else if o.Did != Refused || o.Failure.Code != "comment.interrupted" || len(c.comments) != 0 {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestPersonEdits(t *testing.T) {
	c := newConversation()
	k := c.keeper(t)
	k.ReplaceResults(background, results(head1, 10, 1))
	k.ReplaceNotice(background, starting(900, 10))
	body := &c.comments[0].Body

	*body = strings.ReplaceAll(*body, "\n", "\r\n") + "\r\n"
	if o := k.ReplaceResults(background, results(head1, 10, 1)); o.Did != Unchanged {
		t.Errorf("the ends of lines: got %s", o.Did)
	}
	*body = strings.Replace(*body, `"v":2`, `"v": 2`, 1)
	if s, err := k.Read(background); err != nil || s.CountStarts() != 0 || s.Head() != "" {
		t.Errorf("a state that we did not spell: got %+v, %v", s, err)
	}
	if o := k.ReplaceNotice(background, answer(901)); o.Did != Updated || c.only(t).texts() != "" {
		t.Errorf("results without a state: got %s, %q", o.Did, c.only(t).texts())
	}
	if o := k.ReplaceResults(background, results(head1, 1, 1)); o.Did != Updated || c.only(t).notice != "answer to 901" {
		t.Errorf("got %s, %q", o.Did, c.only(t).notice)
	}
	*body = "I have written something else here"
	if o := k.ReplaceResults(background, results(head1, 11, 1)); o.Did != Posted || len(c.comments) != 2 {
		t.Errorf("got %s, %d comments", o.Did, len(c.comments))
	}
}

func TestInvalid(t *testing.T) {
	good := results(head1, 10, 1)
	change := func(f func(*Results)) Results { r := good; f(&r); return r }
	tests := []struct {
		name string
		r    Results
	}{
		{"short head", change(func(r *Results) { r.Head = "abc" })},
		{"head in capitals", change(func(r *Results) { r.Head = strings.Repeat("A", 40) })},
		{"no run", change(func(r *Results) { r.RunID = 0 })},
		{"no attempt", change(func(r *Results) { r.Attempt = 0 })},
		{"unknown conclusion", change(func(r *Results) { r.Conclusion = "great" })},
		{"no job", change(func(r *Results) { r.Job = "" })},
		{"a source with Markdown", change(func(r *Results) { r.Name = "`<b>`" })},
		{"unknown mark", change(func(r *Results) { r.Mark = "🎉" })},
		{"negative total", change(func(r *Results) { r.Totals.Failed = -1 })},
		{"no body", change(func(r *Results) { r.Body = nil })},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newConversation()
			if o := c.keeper(t).ReplaceResults(background, test.r); o.Did != Refused || o.Failure.Code != "comment.invalid" || len(c.ops) != 0 {
				t.Errorf("got %+v, %+v after %v", o, o.Failure, c.ops)
			}
		})
	}
	for _, n := range []Notice{{}, {Comment: -1}, {Comment: 1, Start: 5}, {Comment: 1, Start: -5, Time: time.Unix(1, 0)}} {
		c := newConversation()
		if o := c.keeper(t).ReplaceNotice(background, n); o.Did != Refused || o.Failure.Code != "comment.invalid" {
			t.Errorf("%+v: got %+v", n, o)
		}
	}
}

func TestNew(t *testing.T) {
	c := newConversation()
	for name, o := range map[string]Options{
		"no client":           {PR: 1, Author: bot},
		"no pull request":     {Client: c, Author: bot},
		"no author":           {Client: c, PR: 1},
		"a login alone":       {Client: c, PR: 1, Author: github.Author{Login: "octocat", Type: "User"}},
		"a person as a bot":   {Client: c, PR: 1, Author: github.Author{Login: "github-actions[bot]", Type: "User"}},
		"another bot by name": {Client: c, PR: 1, Author: github.Author{Login: "my-app[bot]", Type: "Bot"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestReadFails(t *testing.T) {
	c := newConversation()
	c.fail["list"] = []failure{{err: refusal(github.Forbidden)}}
	var stop *proposal.StopError
	if _, err := c.keeper(t).Read(background); !errors.As(err, &stop) || stop.Code != "github.forbidden" {
		t.Errorf("got %v", err)
	}
}
