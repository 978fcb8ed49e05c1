// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// in returns the header value for a time so many seconds after testTime.
func in(seconds int64) string { return strconv.FormatInt(testTime.Unix()+seconds, 10) }

type ask func(ctx context.Context, c *Client) error

var (
	readIt ask = func(ctx context.Context, c *Client) error { _, err := c.Comment(ctx, 7); return err }
	makeIt ask = func(ctx context.Context, c *Client) error { _, err := c.CreateComment(ctx, 2, "x"); return err }
	setIt  ask = func(ctx context.Context, c *Client) error { _, err := c.UpdateComment(ctx, 7, "x"); return err }
	dropIt ask = func(ctx context.Context, c *Client) error { return c.DeleteComment(ctx, 7) }
	likeIt ask = func(ctx context.Context, c *Client) error { return c.AddReaction(ctx, 7, "eyes") }
)

func TestRetries(t *testing.T) {
	read, made := say(200, commentJSON(7)), say(201, commentJSON(7))
	limit := func(status int, header ...string) step {
		return say(status, `{"message":"You have exceeded a secondary rate limit."}`, header...)
	}
	tests := []struct {
		name     string
		ask      ask
		steps    []step
		requests int
		sleeps   []time.Duration // exact; nil means backoff, within its bounds
		kind     Kind            // "" means success
	}{
		{"403 and retry-after", readIt, []step{limit(403, "Retry-After", "7"), read}, 2, []time.Duration{7 * time.Second}, ""},
		{"429 and retry-after", readIt, []step{limit(429, "Retry-After", "7"), read}, 2, []time.Duration{7 * time.Second}, ""},
		{"429 and a date", readIt, []step{limit(429, "Retry-After", testTime.Add(9*time.Second).Format(http.TimeFormat)), read}, 2, []time.Duration{9 * time.Second}, ""},
		{"403 and a reset", readIt, []step{limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in(30)), read}, 2, []time.Duration{31 * time.Second}, ""},
		{"429 and a reset", readIt, []step{limit(429, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in(30)), read}, 2, []time.Duration{31 * time.Second}, ""},
		{"403 by remaining alone", readIt, []step{say(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in(5)), read}, 2, []time.Duration{6 * time.Second}, ""},
		{"a reset that has passed", readIt, []step{limit(403, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", in(-90)), read}, 2, []time.Duration{time.Second}, ""},
		{"a limit without a time", readIt, []step{limit(403), read}, 2, []time.Duration{time.Minute}, ""},
		{"a limit whose time is no number", readIt, []step{limit(403, "Retry-After", "soon"), read}, 2, []time.Duration{time.Minute}, ""},
		{"a limit again without a time", readIt, []step{limit(403), limit(403)}, 2, []time.Duration{time.Minute}, RateLimited},
		{"a limit beyond patience", readIt, []step{limit(403, "Retry-After", "121"), read}, 1, []time.Duration{}, RateLimited},
		{"a limit for ever", readIt, []step{limit(429, "Retry-After", "99999999999999999999")}, 1, []time.Duration{}, RateLimited},
		{"patience is for all tries", readIt, []step{limit(403, "Retry-After", "50")}, 3, []time.Duration{50 * time.Second, 50 * time.Second}, RateLimited},
		{"a limit that never ends", readIt, []step{limit(403, "Retry-After", "1")}, triesLimited, []time.Duration{1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9}, RateLimited},
		{"a write waits for a limit too", makeIt, []step{limit(403, "Retry-After", "3"), limit(429, "Retry-After", "4"), made}, 3, []time.Duration{3e9, 4e9}, ""},
		{"comments too fast", makeIt, []step{say(422, `{"message":"Validation Failed","errors":[{"message":"was submitted too quickly"}]}`), made}, 2, []time.Duration{time.Minute}, ""},

		{"500", readIt, []step{say(500, ""), read}, 2, nil, ""},
		{"502, 503, 504", readIt, []step{say(502, "x"), say(503, "x"), say(504, "x"), read}, 4, nil, ""},
		{"503 that says when", readIt, []step{say(503, "", "Retry-After", "11"), read}, 2, []time.Duration{11e9}, ""},
		{"500 for ever", readIt, []step{say(500, `{"message":"oops"}`)}, triesUnavailable, nil, Unavailable},
		{"reset", readIt, []step{hangUp, hangUp, read}, 3, nil, ""},
		{"reset for ever", readIt, []step{hangUp}, triesUnavailable, nil, Unavailable},
		{"cut off", readIt, []step{cutOff(200, `{"id":7,`), read}, 2, nil, ""},
		{"cut off in an error", readIt, []step{cutOff(404, `{"mess`), read}, 2, nil, ""},
		{"half a document", readIt, []step{say(200, `{"id":7,`), read}, 2, nil, ""},
		{"two documents", readIt, []step{say(200, `{"id":7}{"id":7}`)}, triesMalformed, nil, Malformed},
		{"another comment", readIt, []step{say(200, commentJSON(8))}, triesMalformed, nil, Malformed},
		{"login page", readIt, []step{say(200, "<html>")}, triesMalformed, nil, Malformed},

		{"a write is not repeated after 500", makeIt, []step{say(500, ""), made}, 1, nil, Uncertain},
		{"a write is not repeated after a reset", makeIt, []step{hangUp, made}, 1, nil, Uncertain},
		{"a write is not repeated when its answer is cut off", makeIt, []step{cutOff(201, `{"id":7,`), made}, 1, nil, Uncertain},
		{"an update is repeated", setIt, []step{hangUp, say(502, ""), read}, 3, nil, ""},
		{"an update that stays open", setIt, []step{hangUp}, triesUnavailable, nil, Uncertain},
		{"a reaction is repeated", likeIt, []step{say(502, ""), say(200, `{"id":1,"content":"eyes"}`)}, 2, nil, ""},
		{"a deletion is repeated", dropIt, []step{hangUp, say(204, "")}, 2, nil, ""},
		{"a deletion that had worked", dropIt, []step{hangUp, say(404, `{"message":"Not Found"}`)}, 2, nil, ""},
		{"a deletion of nothing", dropIt, []step{say(404, `{"message":"Not Found"}`)}, 1, nil, NotFound},
		{"a refusal is not repeated", readIt, []step{say(404, `{}`), read}, 1, nil, NotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, test.steps...)
			c, k := client(t, s.URL)
			err := test.ask(context.Background(), c)
			if KindOf(err) != test.kind || (err == nil) != (test.kind == "") {
				t.Errorf("got %v, want kind %q", err, test.kind)
			}
			if n := len(s.requests()); n != test.requests {
				t.Errorf("sent %d requests, want %d", n, test.requests)
			}
			checkSleeps(t, k.sleeps, test.sleeps, test.requests-1)
		})
	}
}

func checkSleeps(t *testing.T, got, want []time.Duration, n int) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("slept %v, want %d times", got, n)
	}
	for i, d := range got {
		mean := firstBackoff << i
		if want == nil && (d < mean/2 || d > mean*3/2) {
			t.Errorf("backed off %v at %d, want %v give or take a half", d, i, mean)
		}
		if want != nil && d != want[i] {
			t.Errorf("slept %v, want %v", got, want)
		}
	}
}

// Patience counts the time slept even if the clock does not advance.
func TestPatienceWithoutAClock(t *testing.T) {
	s := play(t, say(429, `{}`, "Retry-After", "50"))
	c, _ := client(t, s.URL, func(o *Options) {
		o.Sleep = func(context.Context, time.Duration) error { return nil }
		o.Now = func() time.Time { return testTime }
	})
	wantError(t, readIt(context.Background(), c), RateLimited, "github.rate-limit")
	if n := len(s.requests()); n != 3 {
		t.Errorf("sent %d requests, want 3", n)
	}
}

// A refused connection had no effect: a write is tried again.
func TestRefusedConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	c, k := client(t, "http://"+listener.Addr().String())
	wantError(t, makeIt(context.Background(), c), Unavailable, "github.unavailable")
	checkSleeps(t, k.sleeps, nil, triesUnavailable-1)
}

func TestSlowAnswer(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		io.WriteString(w, `{"id":`)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	short := func(o *Options) { o.Timeout = 30 * time.Millisecond }
	t.Run("read", func(t *testing.T) {
		s := play(t, slow, say(200, commentJSON(7)))
		c, _ := client(t, s.URL, short)
		if err := readIt(context.Background(), c); err != nil || len(s.requests()) != 2 {
			t.Errorf("got %v after %d requests", err, len(s.requests()))
		}
	})
	t.Run("write", func(t *testing.T) {
		s := play(t, slow)
		c, _ := client(t, s.URL, short)
		e, _ := wantError(t, makeIt(context.Background(), c), Uncertain, "github.unavailable")
		if len(s.requests()) != 1 || !strings.Contains(e.Message, "within 30ms") {
			t.Errorf("got %v after %d requests", e, len(s.requests()))
		}
	})
}

func TestCallerLeaves(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		c, _ := client(t, play(t, say(500, "")).URL, func(o *Options) {
			o.Sleep = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
		})
		err := readIt(ctx, c)
		wantError(t, err, Canceled, "github.canceled")
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for kind, f := range map[Kind]ask{Canceled: readIt, Uncertain: makeIt} {
		t.Run("in a request: "+string(kind), func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			c, _ := client(t, play(t, func(w http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }).URL)
			if err := f(ctx, c); KindOf(err) != kind || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want kind %q", err, kind)
			}
		})
	}
	t.Run("no time to wait", func(t *testing.T) {
		s := play(t, say(429, `{}`, "Retry-After", "7200"))
		c, k := client(t, s.URL, func(o *Options) { o.Now, o.MaxWait = time.Now, 24*time.Hour })
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		e, _ := wantError(t, readIt(ctx, c), RateLimited, "github.rate-limit")
		if len(k.sleeps) != 0 || time.Until(e.Until) < time.Hour {
			t.Errorf("slept %v, until %v", k.sleeps, e.Until)
		}
	})
}

// The last request of the rate limit succeeds. After that, go-github by itself
// would refuse the next one.
func TestLastRequestOfTheQuota(t *testing.T) {
	s := play(t, say(200, commentJSON(7), "X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9999999999"))
	c, _ := client(t, s.URL)
	for range 2 {
		if err := readIt(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.requests()); n != 2 {
		t.Errorf("sent %d requests, want 2", n)
	}
}
