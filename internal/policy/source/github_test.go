// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const onGitHub = "github:acme/policy/out/p.tar.gz@heads/main"

// A host is GitHub with one file, or an error.
type host struct {
	data   []byte
	commit string
	err    error
}

func (h *host) read(_ context.Context, repository, ref, path string) ([]byte, string, error) {
	if repository != "acme/policy" || ref != "heads/main" || path != "out/p.tar.gz" {
		return nil, "", &proposal.StopError{Code: "github.not-found", Message: repository + " " + ref + " " + path}
	}
	return h.data, h.commit, h.err
}

// signedBundle is a bundle that the key in the directory has signed.
func signedBundle(t *testing.T, key, revision string, age time.Duration) []byte {
	t.Helper()
	data, err := Build(Recipe{Revision: revision, MaxCopyAge: age, Files: []policy.File{{Name: "a.rego", Content: []byte(rule)}}})
	if err == nil {
		data, err = Signing{Key: key, KeyID: DefaultKeyID}.Sign("p.tar.gz", data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newHost returns a host with revision 3, the options that read it, and a function that replaces the bundle.
func newHost(t *testing.T, age time.Duration) (*host, *Options, func(revision string, by string)) {
	t.Helper()
	secrets := t.TempDir()
	for _, name := range []string{"ours", "theirs"} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(strings.Repeat(name, 20)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := ReadKeys([]string{secretPrefix + filepath.Join(secrets, "ours")})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{}
	put := func(revision, by string) {
		h.data = signedBundle(t, secretPrefix+filepath.Join(secrets, by), revision, age)
		h.commit = strings.Repeat("0", 39) + revision
	}
	put("3", "ours")
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	return h, &Options{Keys: keys, MinimumRevision: "3", GitHub: h.read, Now: func() time.Time { return now }}, put
}

// What a ref names takes effect at once if the key signed it and it is not too old, and nothing else does.
func TestGitHub(t *testing.T) {
	lanetest.SkipShort(t)
	h, o, put := newHost(t, 0)
	for _, revision := range []string{"3", "4"} {
		put(revision, "ours")
		l, origin, err := Read(t.Context(), onGitHub, *o)
		want := Origin{Kind: KindGitHub, Spec: onGitHub, Commit: h.commit, Digest: Digest(h.data), Revision: revision, SignedBy: "HS256"}
		if err != nil || len(l.Files) != 1 || origin != want {
			t.Errorf("%+v, %v", origin, err)
		}
	}
	without := func(change func(*Options)) Options { changed := *o; change(&changed); return changed }
	for name, tt := range map[string]struct {
		revision, by string
		o            Options
		code, said   string
	}{
		"an older one":        {"2", "ours", *o, CodeRevision, "older"},
		"another key":         {"5", "theirs", *o, CodeSignature, "invalid signature"},
		"no key given":        {"5", "ours", without(func(o *Options) { o.Keys = nil }), CodeSignature, "no key"},
		"no minimum given":    {"5", "ours", without(func(o *Options) { o.MinimumRevision = "" }), CodeRevision, "no minimum"},
		"outside of a job":    {"5", "ours", without(func(o *Options) { o.GitHub = nil }), CodeSource, "action"},
		"a copy that is kept": {"5", "ours", without(func(o *Options) { o.CopyDir = "/dev/null/x" }), codeCopy, "cannot keep"},
	} {
		put(tt.revision, tt.by)
		l, _, err := Read(t.Context(), onGitHub, tt.o)
		t.Run(name, func(t *testing.T) { wantCode(t, err, tt.code, tt.said) })
		if len(l.Files) > 0 {
			t.Errorf("%s: it has files", name)
		}
	}
}

// A copy replaces a bundle only while GitHub does not answer, and as long as the bundle says.
func TestGitHubCopy(t *testing.T) {
	lanetest.SkipShort(t)
	silent := &proposal.StopError{Code: "github.rate-limit", Message: "m", Hint: "h"}
	for name, tt := range map[string]struct {
		age    time.Duration // that the bundle allows
		later  time.Duration
		failed error
		change func(*testing.T, *Options, string) // of the options, or the copy's file
		said   string                             // "" if it is used
	}{
		"in time":            {age: time.Hour, later: time.Hour, failed: silent},
		"offline":            {age: time.Hour, later: time.Minute, failed: &proposal.StopError{Code: "github.unavailable", Message: "m"}},
		"too late":           {age: time.Hour, later: time.Hour + time.Second, failed: silent, said: "valid for 1h"},
		"not allowed":        {later: time.Second, failed: silent, said: "without --max-copy-age"},
		"from tomorrow":      {age: time.Hour, later: -time.Hour, failed: silent, said: "was read at"},
		"no longer visible":  {age: time.Hour, failed: &proposal.StopError{Code: "github.not-found", Message: "m", Hint: "h"}, said: "m"},
		"a token that ended": {age: time.Hour, failed: &proposal.StopError{Code: "github.permission", Message: "m", Hint: "h"}, said: "m"},
		"a newer minimum": {age: time.Hour, failed: silent, said: "older than the minimum",
			change: func(_ *testing.T, o *Options, _ string) { o.MinimumRevision = "4" }},
		"a key that was removed": {age: time.Hour, failed: silent, said: "signature",
			change: func(_ *testing.T, o *Options, _ string) {
				o.Keys = Keys{{name: "HS256", material: strings.Repeat("x", 40), algorithms: []string{"HS256"}}}
			}},
		"no copy": {age: time.Hour, failed: silent, said: "there is none",
			change: func(_ *testing.T, o *Options, _ string) { o.CopyDir = filepath.Join(o.CopyDir, "x") }},
		"a damaged copy": {age: time.Hour, failed: silent, said: "cannot be read",
			change: func(t *testing.T, _ *Options, file string) { replaceIn(t, file, `"spec"`, `"Spec2"`) }},
		"of another place": {age: time.Hour, failed: silent, said: "another policy's",
			change: func(t *testing.T, _ *Options, file string) { replaceIn(t, file, "heads/main", "heads/old") }},
		"a commit that is none": {age: time.Hour, failed: silent, said: "another policy's",
			change: func(t *testing.T, _ *Options, file string) { replaceIn(t, file, strings.Repeat("0", 39), "::error::") }},
	} {
		t.Run(name, func(t *testing.T) {
			h, o, _ := newHost(t, tt.age)
			o.CopyDir = filepath.Join(t.TempDir(), "copies")
			_, before, err := Read(t.Context(), onGitHub, *o)
			if err != nil {
				t.Fatal(err)
			}
			read := o.Now()
			o.Now = func() time.Time { return read.Add(tt.later) }
			h.data, h.err = nil, tt.failed
			if tt.change != nil {
				tt.change(t, o, filepath.Join(o.CopyDir, copyName))
			}
			l, origin, err := Read(t.Context(), onGitHub, *o)
			if tt.said != "" {
				wantCode(t, err, CodeFetch, tt.said)
				if len(l.Files) > 0 {
					t.Error("it has files")
				}
				return
			}
			if before.Copied = read; err != nil || len(l.Files) != 1 || origin != before {
				t.Errorf("%+v, %v", origin, err)
			}
		})
	}
}

func replaceIn(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), from) {
		t.Fatalf("%q is not in %s: %v", from, file, err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(data), from, to)), 0o600); err != nil {
		t.Fatal(err)
	}
}
