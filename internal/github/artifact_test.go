// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestArtifacts(t *testing.T) {
	s := play(t,
		say(200, `{"total_count":2,"artifacts":[{"id":11,"name":"fumehood","size_in_bytes":453,"expired":false,"digest":"sha256:cf","created_at":"2026-11-21T12:00:00Z"}]}`,
			"Link", `<https://x.example/?page=2>; rel="next"`),
		say(200, `{"total_count":2,"artifacts":[{"id":11,"name":"fumehood"},{"id":12,"name":"old","expired":true}]}`))
	c, _ := client(t, s.URL)
	got, err := c.Artifacts(context.Background(), 30433642)
	want := []Artifact{
		{ID: 11, Name: "fumehood", Size: 453, Digest: "sha256:cf", Created: testTime},
		{ID: 12, Name: "old", Expired: true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	c, _ = client(t, play(t, say(200, `{"artifacts":[{"name":"x"}]}`)).URL)
	_, err = c.Artifacts(context.Background(), 1)
	wantError(t, err, Malformed, "github.malformed")
}

func TestDownload(t *testing.T) {
	zip := strings.Repeat("z", 100)
	blob := elsewhere(t, say(200, zip))
	ends := elsewhere(t, cutOff(200, zip[:50]))
	away := elsewhere(t, redirect(302, "http://storage.example/x"))
	round := elsewhere(t, redirect(302, blob.URL+"/again"))
	gone := elsewhere(t, say(403, "signature expired"))
	shut := elsewhere(t, hangUp)
	const limit = 100
	tests := []struct {
		name  string
		steps []step
		max   int64
		kind  Kind
		text  string // in the error
	}{
		{"whole", []step{redirect(302, blob.URL+"/zip?sig=x")}, limit, "", ""},
		{"moved repository", []step{redirect(301, "/repositories/1/actions/artifacts/11/zip"), redirect(302, blob.URL)}, limit, "", ""},
		{"from another place", []step{redirect(302, round.URL)}, limit, "", ""},
		{"too large by one", []step{redirect(302, blob.URL)}, limit - 1, TooLarge, "more than 99 bytes"},
		{"expired", []step{say(410, `{"message":"Artifact has expired"}`)}, limit, NotFound, "expired"},
		{"missing right", []step{say(403, `{"message":"Resource not accessible by integration"}`)}, limit, Forbidden, ""},
		{"cut off for ever", []step{redirect(302, ends.URL)}, limit, Unavailable, "unexpected EOF"},
		{"the place has forgotten", []step{redirect(302, gone.URL)}, limit, Unavailable, "403"},
		{"the place forgets, then not", []step{redirect(302, gone.URL), redirect(302, shut.URL+"?sig=canary"), redirect(302, blob.URL)}, limit, "", ""},
		{"plain http elsewhere", []step{redirect(302, "http://storage.example/zip")}, limit, Moved, "http://storage.example"},
		{"plain http by way of another", []step{redirect(302, away.URL)}, limit, Moved, "http://storage.example"},
		{"a file", []step{redirect(302, "file:///etc/passwd")}, limit, Moved, "file://"},
		{"no host", []step{redirect(302, "/zip")}, limit, Moved, ""},
		{"the bytes at once", []step{say(200, zip)}, limit, Malformed, ""},
		{"nowhere", []step{say(302, "")}, limit, Malformed, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, _ := client(t, play(t, test.steps...).URL)
			data, err := c.DownloadArtifact(context.Background(), 11, test.max)
			if KindOf(err) != test.kind || (err == nil) != (test.kind == "") {
				t.Fatalf("got %v, want %q", err, test.kind)
			}
			if err == nil && string(data) != zip || err != nil && data != nil {
				t.Errorf("got %q", data)
			}
			if err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %q", err, test.text)
			}
		})
	}
}

// Reading a zip without an end stops at the bound.
func TestEndlessDownload(t *testing.T) {
	left := make(chan int, 1)
	blob := play(t, func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for chunk := make([]byte, 1<<16); r.Context().Err() == nil; n += len(chunk) {
			w.Write(chunk)
		}
		left <- n
	})
	c, _ := client(t, play(t, redirect(302, blob.URL)).URL, func(o *Options) { o.MaxWait, o.Timeout = 10*time.Second, 10*time.Second })
	_, err := c.DownloadArtifact(context.Background(), 11, 1<<20)
	wantError(t, err, TooLarge, "github.too-large")
	if n := <-left; n > 64<<20 {
		t.Errorf("the server could send %d bytes", n)
	}
}

// The URL of the storage is a credential: no message shows it.
func TestPlaceIsNotTold(t *testing.T) {
	shut := play(t, hangUp)
	c, _ := client(t, play(t, redirect(302, shut.URL+"/zip?sig=canary")).URL)
	_, err := c.DownloadArtifact(context.Background(), 11, 100)
	wantError(t, err, Unavailable, "github.unavailable")
	if strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
}

// A large artifact may take longer than a response of the API.
func TestTimeOfARequest(t *testing.T) {
	blob := play(t, say(200, "zip"))
	s := play(t, redirect(302, blob.URL), say(200, commentJSON(7)))
	var left []time.Duration
	c, _ := client(t, s.URL, func(o *Options) {
		next := o.Transport
		o.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			end, _ := r.Context().Deadline()
			left = append(left, time.Until(end))
			return next.RoundTrip(r)
		})
	})
	if _, err := c.DownloadArtifact(context.Background(), 11, 100); err != nil {
		t.Fatal(err)
	}
	if err := readIt(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{DefaultMaxWait, DefaultMaxWait, DefaultTimeout}
	near := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 20*time.Second })
	if diff := cmp.Diff(want, left, near); diff != "" {
		t.Error(diff)
	}
}

func TestCheckPlace(t *testing.T) {
	tests := []struct {
		base, place string
		ok          bool
	}{
		{"https://api.github.com/", "https://storage.example/zip", true},
		{"https://api.github.com/", "http://storage.example/zip", false},
		{"https://api.github.com/", "http://api.github.com/zip", false},
		{"https://api.github.com/", "https://user:secret@storage.example/zip", false},
		{"https://api.github.com/", "https:///zip", false},
		{"https://api.github.com/", "ftp://storage.example/zip", false},
		{"https://api.github.com/", "http://127.0.0.1:9/zip", true},
		{"https://api.github.com/", "http://[::1]:9/zip", true},
		{"https://api.github.com/", "http://127.0.0.1.storage.example/zip", false},
		{"https://api.github.com/", "http://169.254.169.254/zip", false},
		{"http://ghes.example/api/v3/", "http://ghes.example:8080/zip", true},
		{"http://ghes.example/api/v3/", "http://GHES.example/zip", true},
		{"http://ghes.example/api/v3/", "http://storage.example/zip", false},
	}
	for _, test := range tests {
		t.Run(test.place+" from "+test.base, func(t *testing.T) {
			place, _ := url.Parse(test.place)
			base, _ := url.Parse(test.base)
			if err := checkPlace(place, base); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
