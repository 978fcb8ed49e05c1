// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

const diffText = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"

// A diff and a document of one URL are not mistaken for each other, whatever the server's tags say.
func TestDiff(t *testing.T) {
	both := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"same"`)
		switch {
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		case strings.HasSuffix(r.Header.Get("Accept"), "diff"):
			w.Header().Set("Content-Type", "application/vnd.github.v3.diff; charset=utf-8")
			_, _ = w.Write([]byte(diffText))
		default:
			_, _ = w.Write([]byte(pullJSON(sha, "null")))
		}
	}
	c, _ := client(t, play(t, both).URL)
	for range 2 {
		pull, err := c.PullRequest(context.Background(), 2)
		if err != nil || pull.Head.SHA != sha {
			t.Fatalf("%+v, %v", pull, err)
		}
		if got, err := c.Diff(context.Background(), 2); err != nil || string(got) != diffText {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// A diff that GitHub does not generate, or that is longer than what is read, is too large and is
// requested once. What is not a diff is an error.
func TestDiffRefused(t *testing.T) {
	kind := []string{"Content-Type", "application/vnd.github.v3.diff"}
	for name, test := range map[string]struct {
		step step
		kind Kind
		code string
		sent int
	}{
		"too many lines": {say(406, `{"message":"Sorry, the diff exceeded the maximum number of lines (20000)","errors":[{"resource":"PullRequest","field":"diff","code":"too_large"}]}`), TooLarge, "github.too-large", 1},
		"8 MiB":          {say(200, strings.Repeat("x", maxBody+1), kind...), TooLarge, "github.too-large", 1},
		"a document":     {say(200, "{}", "Content-Type", "application/json"), Malformed, "github.malformed", 3},
		"not found":      {say(404, `{"message":"Not Found"}`), NotFound, "github.not-found", 1},
	} {
		s := play(t, test.step)
		c, _ := client(t, s.URL)
		_, err := c.Diff(context.Background(), 2)
		wantError(t, err, test.kind, test.code)
		if n := len(s.requests()); n != test.sent {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}
