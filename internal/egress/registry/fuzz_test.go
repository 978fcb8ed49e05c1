// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// However a path is spelled, a path that belongs to a registry stays below it after as
// many rounds of unescaping as a server might do.
func FuzzMatch(f *testing.F) {
	for _, p := range []string{"/npm/x", "/npm/../x", "/npm/%2e%2e/x", "/npm/%252e./x", `/npm/..\x`, "/npm/..;a/x", "/npm//../x", "/npm/%2f..%2f..", "/npm"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if p == "" || len(Match(known[1:2], "mirror.example", 443, p)) == 0 {
			return
		}
		for range 4 {
			read := strings.ReplaceAll(p, `\`, "/")
			if c := path.Clean(read); c != "/npm" && !strings.HasPrefix(c, "/npm/") {
				t.Fatalf("%q is read as %q", p, c)
			}
			next, err := url.PathUnescape(p)
			if err != nil {
				t.Fatalf("%q cannot be undone", p)
			}
			p = next
		}
	})
}

// readURL returns only URLs that parse to themselves.
func FuzzReadURL(f *testing.F) {
	for _, u := range []string{"https://a:b@r.example/x/", "http://r.example:80", "https://[::1]:1/%41", "https://r.example/a\nb", "//x", "https://@r.example/"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readURL(text)
		if err != nil {
			return
		}
		again, err := readURL(p.clean)
		if err != nil || again.origin != p.origin || again.credential != nil || strings.ContainsFunc(p.clean, needsQuoting) {
			t.Fatalf("%q became %q: %+v, %v", text, p.clean, again, err)
		}
	})
}
