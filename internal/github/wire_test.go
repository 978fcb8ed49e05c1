// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gh "github.com/google/go-github/v62/github"
)

// linked returns a response as go-github reads it.
func linked(link string) *gh.Response {
	server := &http.Response{StatusCode: 200, Header: http.Header{"Link": {link}}, Body: io.NopCloser(strings.NewReader("[]"))}
	c := gh.NewClient(&http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return server, nil })})
	req, _ := c.NewRequest("GET", "x", nil)
	resp, _ := c.Do(context.Background(), req, nil)
	return resp
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// elsewhere is another host, which must never receive the token.
func elsewhere(t *testing.T, answer step) *script {
	s := play(t, answer)
	t.Cleanup(func() {
		for _, r := range s.requests() {
			var all bytes.Buffer
			r.Header.Write(&all)
			if strings.Contains(all.String()+r.URL.String(), testToken) {
				t.Errorf("the token was sent to another host: %s %s\n%s", r.Method, r.URL, all.String())
			}
		}
	})
	return s
}

func redirect(status int, place string) step { return say(status, `{}`, "Location", place) }

func TestRedirects(t *testing.T) {
	other := elsewhere(t, say(200, commentJSON(7)))
	tests := []struct {
		name     string
		ask      ask
		steps    []step
		requests int
		kind     Kind
	}{
		{"a read follows on the same host", readIt, []step{redirect(301, "/repositories/1/issues/comments/7"), say(200, commentJSON(7))}, 2, ""},
		{"a read follows 307", readIt, []step{redirect(307, "/x"), say(200, commentJSON(7))}, 2, ""},
		{"a write follows 307", makeIt, []step{redirect(307, "/repositories/1/issues/2/comments"), say(201, commentJSON(7))}, 2, ""},
		{"a write follows 308", setIt, []step{redirect(308, "/x"), say(200, commentJSON(7))}, 2, ""},
		{"a write does not become a read", makeIt, []step{redirect(302, "/x"), say(200, commentJSON(7))}, 1, Moved},
		{"a deletion does not become a read", dropIt, []step{redirect(301, "/x"), say(204, "")}, 1, Moved},
		{"a read stays on the host", readIt, []step{redirect(301, other.URL)}, 1, Moved},
		{"a write stays on the host", makeIt, []step{redirect(307, other.URL)}, 1, Moved},
		{"a read stays with the scheme", readIt, []step{func(w http.ResponseWriter, r *http.Request) {
			redirect(301, "https://"+r.Host+"/x")(w, r)
		}}, 1, Moved},
		{"round and round", readIt, []step{redirect(302, "/x")}, maxRedirects + 1, Moved},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, test.steps...)
			c, _ := client(t, s.URL)
			err := test.ask(context.Background(), c)
			if KindOf(err) != test.kind || (err == nil) != (test.kind == "") {
				t.Errorf("got %v, want %q", err, test.kind)
			}
			if n := len(s.requests()); n != test.requests {
				t.Errorf("sent %d requests, want %d", n, test.requests)
			}
			for i, r := range s.requests() {
				if r.Header.Get("Authorization") != "Bearer "+testToken {
					t.Errorf("request %d had no token", i)
				}
				if r.Method == http.MethodPost && !strings.Contains(s.bodies()[i], `"body":"x"`) {
					t.Errorf("request %d had the body %q", i, s.bodies()[i])
				}
			}
		})
	}
	if n := len(other.requests()); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
}

func TestNoToken(t *testing.T) {
	s := play(t, say(200, commentJSON(7)))
	c, _ := client(t, s.URL, func(o *Options) { o.Token = "" })
	if err := readIt(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if h := s.requests()[0].Header; h.Get("Authorization") != "" || h.Get("User-Agent") != "fumehood" {
		t.Errorf("sent %v", h)
	}
}

func TestScopes(t *testing.T) {
	s := play(t, say(200, commentJSON(7), "X-OAuth-Scopes", "repo, workflow"), say(200, commentJSON(7)))
	c, _ := client(t, s.URL)
	if got := c.Scopes(); got != "" {
		t.Errorf("got %q before the first answer", got)
	}
	for range 2 {
		if err := readIt(context.Background(), c); err != nil || c.Scopes() != "repo, workflow" {
			t.Errorf("got %q, %v", c.Scopes(), err)
		}
	}
}

func TestLongAnswer(t *testing.T) {
	padded := func(n int) step {
		body := commentJSON(7)
		return say(200, body+strings.Repeat(" ", n-len(body)))
	}
	c, _ := client(t, play(t, padded(maxBody)).URL)
	if err := readIt(context.Background(), c); err != nil {
		t.Error(err)
	}
	s := play(t, padded(maxBody+1))
	c, _ = client(t, s.URL)
	wantError(t, readIt(context.Background(), c), Malformed, "github.malformed")
	if n := len(s.requests()); n != 1 {
		t.Errorf("asked %d times for what is too long", n)
	}
}

// A compressed body that expands beyond the bound is refused.
func TestPackedAnswer(t *testing.T) {
	c, _ := client(t, play(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(gzipped(bytes.Repeat([]byte(" "), maxBody+1)))
	}).URL)
	wantError(t, readIt(context.Background(), c), Malformed, "github.malformed")
}

func TestETags(t *testing.T) {
	bodies := []string{commentJSON(7), strings.Replace(commentJSON(7), `"b"`, `"new"`, 1)}
	version, whole := 0, 0
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		tag := `W/"` + string(rune('a'+version)) + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(304)
			return
		}
		whole++
		io.WriteString(w, bodies[version])
	})
	c, _ := client(t, s.URL)
	for i, want := range []struct {
		version, whole int
		body           string
	}{{0, 1, "b"}, {0, 1, "b"}, {1, 2, "new"}, {1, 2, "new"}} {
		version = want.version
		comment, err := c.Comment(context.Background(), 7)
		if err != nil || comment.Body != want.body || whole != want.whole {
			t.Errorf("%d: got %q, %v with %d whole answers, want %q with %d", i, comment.Body, err, whole, want.body, want.whole)
		}
	}
}

// Pages that have not changed are still returned.
func TestETagsOfPages(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		page := r.URL.Query().Get("page")
		w.Header().Set("ETag", `"`+page+`"`)
		if r.Header.Get("If-None-Match") == `"`+page+`"` {
			w.WriteHeader(304)
			return
		}
		if page == "1" {
			list("https://x.example/?page=2", 1)(w, r)
			return
		}
		list("", 2)(w, r)
	})
	c, _ := client(t, s.URL)
	for range 2 {
		if comments, err := c.Comments(context.Background(), 2); err != nil || len(comments) != 2 {
			t.Errorf("got %v, %v", comments, err)
		}
	}
	if n := len(s.requests()); n != 4 {
		t.Errorf("sent %d requests", n)
	}
}

func TestNotModifiedUnasked(t *testing.T) {
	c, _ := client(t, play(t, say(304, "")).URL)
	wantError(t, readIt(context.Background(), c), Malformed, "github.malformed")
}

func TestCacheBound(t *testing.T) {
	c := newCache(100)
	c.put("none", entry{"", nil, make([]byte, 10)})
	c.put("large", entry{"x", nil, make([]byte, 26)})
	c.put("long", entry{strings.Repeat("x", maxETag+1), nil, nil})
	if len(c.entries) != 0 {
		t.Errorf("kept %v", c.entries)
	}
	for _, key := range []string{"a", "a", "b", "c", "d", "d", "e", "f"} {
		c.put(key, entry{"x", nil, make([]byte, 25)})
		sum := 0
		for _, e := range c.entries {
			sum += len(e.body)
		}
		if sum != c.size || sum > 100 {
			t.Errorf("after %s: %d bytes are kept, %d are counted", key, sum, c.size)
		}
	}
	if _, ok := c.get("f"); !ok {
		t.Error("the newest is gone")
	}
}

// Whatever a server sends, the result is a complete list or an error.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "["+commentJSON(2)+","+commentJSON(1)+"]", "", "")
	f.Add(200, "[]", "", "")
	f.Add(200, "null", "", "")
	f.Add(200, `[{"id":1},{"id":1}]`, "", "")
	f.Add(200, `[{"id":-1}]`, "", "")
	f.Add(200, `[{"id":1,"created_at":"yesterday"}]`, "", "")
	f.Add(403, `{"message":"API rate limit exceeded"}`, "1", "0")
	f.Add(429, `{"message":"x","errors":["a",{"message":1},[],null]}`, "-1", "99999999999999999999")
	f.Add(422, `{"message":"\u001b[0m"}`, "Sat, 21 Nov 2026 12:00:00 GMT", "")
	f.Add(301, "", "", "")
	f.Fuzz(func(t *testing.T, status int, body, after, reset string) {
		if status < 200 || status > 599 {
			return
		}
		k := &clock{at: testTime}
		c, err := New(Options{Repository: "a/b", Sleep: k.sleep, Now: k.now, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			w.Header()["Retry-After"], w.Header()["X-Ratelimit-Reset"] = []string{after}, []string{reset}
			w.Header().Set("X-RateLimit-Remaining", "0")
			w.WriteHeader(status)
			io.WriteString(w, body)
			return w.Result(), nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		comments, err := c.Comments(context.Background(), 1)
		switch {
		case err != nil && (comments != nil || KindOf(err) == "" || KindOf(err) == Uncertain):
			t.Errorf("got %v with %v", comments, err)
		case err == nil && (status != 200 || !json.Valid([]byte(body))):
			t.Errorf("took %d %q for a list", status, body)
		}
		for i, comment := range comments {
			if comment.ID <= 0 || i > 0 && comment.ID <= comments[i-1].ID {
				t.Errorf("comment %d has the id %d", i, comment.ID)
			}
		}
		if k.at.Sub(testTime) > DefaultMaxWait {
			t.Errorf("slept %v", k.at.Sub(testTime))
		}
	})
}
