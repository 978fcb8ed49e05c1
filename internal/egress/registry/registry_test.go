// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var known = []Registry{
	{Name: "go", Origins: []Origin{{"https", "mirror.example", 443, "/go"}, {"https", "sums.example", 443, "/"}}},
	{Name: "npm", Origins: []Origin{{"https", "mirror.example", 443, "/npm"}, {"http", "old.example", 8081, "/"}}},
	{Name: "apt", Origins: []Origin{{"http", "192.0.2.7", 80, "/debian"}}},
	{Name: "github-releases", Origins: []Origin{{"https", "github.example", 443, "/*/*/releases"}}},
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name string
		host string
		port int
		path string
		want []string
	}{
		{"lookup", "mirror.example", 0, "", []string{"go", "npm"}},
		{"lookup in another spelling", "Mirror.Example.", 0, "", []string{"go", "npm"}},
		{"lookup of no name", "", 0, "", nil},
		{"lookup of a name below", "x.mirror.example", 0, "", nil},
		{"lookup of a name above", "example", 0, "", nil},
		{"connection", "mirror.example", 443, "", []string{"go", "npm"}},
		{"connection to another port", "mirror.example", 80, "", nil},
		{"connection to a port of its own", "old.example", 8081, "", []string{"npm"}},
		{"connection to an address", "192.0.2.7", 80, "", []string{"apt"}},
		{"request", "mirror.example", 443, "/go/example.org/x/@v/list", []string{"go"}},
		{"request at the root of a registry", "mirror.example", 443, "/npm", []string{"npm"}},
		{"request of a scope", "mirror.example", 443, "/npm/@scope%2fname", []string{"npm"}},
		{"request of a checksum", "sums.example", 443, "/lookup/example.org/x@v1.0.0", []string{"go"}},
		{"request beside it", "mirror.example", 443, "/npmx/left-pad", nil},
		{"request above it", "mirror.example", 443, "/", nil},
		{"request without a slash", "mirror.example", 443, "npm", nil},
		{"request that leads out", "mirror.example", 443, "/npm/../private", nil},
		{"request that leads out, escaped", "mirror.example", 443, "/npm/%2e%2E/private", nil},
		{"request that leads out, escaped twice", "mirror.example", 443, "/npm/%252e%252e/private", nil},
		{"request that leads out over an escaped slash", "mirror.example", 443, "/npm/..%2fprivate", nil},
		{"request that leads out over a backslash", "mirror.example", 443, `/npm/..%5cprivate`, nil},
		{"request that leads out with parameters", "mirror.example", 443, "/npm/..;x/private", nil},
		{"request whose parameters hide a name", "mirror.example", 443, "/npm/-;x/npm/v1/tokens", nil},
		{"request whose parameters hide a name, escaped", "mirror.example", 443, "/npm/-%3bx/npm/v1/tokens", nil},
		{"request with a bad escape", "mirror.example", 443, "/npm/%zz", nil},
		{"request with a zero byte", "mirror.example", 443, "/npm/%00", nil},
		{"dots within a name", "mirror.example", 443, "/npm/a..b/...", []string{"npm"}},
		{"release", "github.example", 443, "/o/r/releases/download/v1/x.tar.gz", []string{"github-releases"}},
		{"not a release", "github.example", 443, "/o/r/issues", nil},
		{"release without a repository", "github.example", 443, "/o//releases", nil},
		{"release too high up", "github.example", 443, "/o/releases", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Match(known, c.host, c.port, c.path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadURL(t *testing.T) {
	for _, c := range []struct {
		name, text, clean string
		origin            Origin
		value             string
	}{
		{"plain", "https://r.example/npm/", "https://r.example/npm/", Origin{"https", "r.example", 443, "/npm"}, ""},
		{"port and case", "http://R.Example.:8081", "http://R.Example.:8081", Origin{"http", "r.example", 8081, "/"}, ""},
		{"address", "https://[2001:db8::1]/x", "https://[2001:db8::1]/x", Origin{"https", "2001:db8::1", 443, "/x"}, ""},
		{"name and password", "https://ada:pa%40ss@r.example/a/../b", "https://r.example/a/../b", Origin{"https", "r.example", 443, "/b"}, "Basic YWRhOnBhQHNz"},
		{"token alone", "https://token@r.example/", "https://r.example/", Origin{"https", "r.example", 443, "/"}, "Basic dG9rZW46"},
		{"no credential over http", "http://ada:pass@r.example/", "http://r.example/", Origin{"http", "r.example", 80, "/"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := readURL(c.text)
			if err != nil {
				t.Fatal(err)
			}
			var value string
			if p.credential != nil {
				value = p.credential.Value
			}
			got := []any{p.clean, p.origin, value}
			if diff := cmp.Diff([]any{c.clean, c.origin, c.value}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// URLs that cannot be a registry are refused, and no message contains a
// password.
func TestReadURLRefuses(t *testing.T) {
	for _, text := range []string{
		"", "r.example", "ftp://ada:canary@r.example/", "file:///srv/packages", "https:///x", "https://r.example:0/",
		"https://ada:canary@r.example:99999/", "https://ada:canary@r.example/?token=canary", "https://r.example/#x",
		"https://ada:canary@r.example/\"quoted\"$x", "https://ada:canary@r.example/%zz", "https:r.example", "https://ada:canary@/x",
		"https://r.example/a\nregistry=https://other.example/",
	} {
		p, err := readURL(text)
		if err == nil {
			t.Errorf("%q: got %+v", text, p.origin)
			continue
		}
		if got := err.Error(); containsCanary(got) {
			t.Errorf("%q: message %q", text, got)
		}
	}
}

// The URL of an origin is read as the same origin.
func TestParseOrigin(t *testing.T) {
	for _, o := range []Origin{{"https", "h.example", 443, "/"}, {"http", "::1", 8080, "/a/*/b"}, {"https", "192.0.2.1", 8443, "/%40scope/@x"}} {
		if got, err := ParseOrigin(o.String()); err != nil || got != o {
			t.Errorf("%s is %+v, %v", o, got, err)
		}
	}
	for _, text := range []string{"", "h.example", "ftp://h.example", "https://user:secret@h.example", "http://user:secret@h.example", "https://h.example/?q", "https://h.example:0"} {
		if got, err := ParseOrigin(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}
