// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/policies"
)

// A Registry is a preset as resolved on this host.
type Registry struct {
	Name string
	// Source is where it was found: "go env", "pip config list", "public defaults".
	Source  string
	Origins []Origin
	// Env are variables for commands in the sandbox, so that their tools use the same mirror.
	// No value contains a credential.
	Env map[string]string
	// Files hold configuration that a variable cannot express.
	Files []File
	// Credentials were found in the configuration. They are for the gateway only and never go
	// into the sandbox.
	Credentials []Credential
}

// An Origin is one place that packages are fetched from.
type Origin struct {
	Scheme string // "https" or "http"
	Host   string // lower case: a name, or an address without brackets
	Port   int
	// Path is the prefix, without a final slash unless it is "/". A segment "*" matches any
	// one segment. A path that ends in "!" is the whole path instead: see matchesWhole.
	Path string
}

// A File is a file that the sandbox needs. "~/" at the start of Path is the command's home.
type File struct {
	Path    string
	Content string
}

// A Credential is what the host's tools would send to Host below Path.
type Credential struct {
	Registry string
	Scheme   string // always "https"
	Host     string
	Port     int
	Path     string
	Header   string // "Authorization"
	Value    string // "Basic …" or "Bearer …"
}

// Names returns the presets, in the usual order.
func Names() []string {
	return policies.RegistryNames(func(policies.Registry) bool { return true })
}

// Match returns the names of the registries that a place belongs to. Port 0 means a lookup,
// where no port is known, and an empty path a connection, where no path is known.
//
// A path matches as sent or percent-decoded. A path that a server may resolve elsewhere, with
// a segment "." or ".." in any spelling, belongs to no registry. Neither does one with a
// backslash, or with a semicolon, because some servers ignore the rest of a segment after it:
// "/-;x/whoami".
func Match(registries []Registry, name string, port int, path string) []string {
	var found []string
	for _, r := range registries {
		if slices.ContainsFunc(r.Origins, func(o Origin) bool { return o.containsPlace(name, port, path) }) {
			found = append(found, r.Name)
		}
	}
	return found
}

func (o Origin) containsPlace(name string, port int, escaped string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || name != o.Host || port != 0 && port != o.Port {
		return false
	}
	if escaped == "" {
		return true
	}
	whole, isWhole := strings.CutSuffix(o.Path, "!")
	if isWhole {
		return isPlainPath(escaped) && matchesWhole(whole, escaped)
	}
	return isPlainPath(escaped) && isBelowPrefix(escaped, o.Path)
}

const (
	maxWhole   = 512 // bytes of a path that a whole one matches
	maxSegment = 200 // bytes of a segment of it
)

// plainSegment matches what the names and versions of packages consist of. It knows no escapes: a server could
// read one as a slash or as the end of the path.
var plainSegment = pattern.New(`^[A-Za-z0-9._~@+!=,-]+$`)

// matchesWhole reports whether p is the path that whole describes: segments in which "*" is any run of
// characters, and, if the last one is "**", one or more segments more. What a "*" matches has
// only characters of the names and versions of packages.
func matchesWhole(whole, p string) bool {
	if len(p) > maxWhole {
		return false
	}
	want, have := strings.Split(whole, "/"), strings.Split(p, "/")
	if last := len(want) - 1; want[last] == "**" {
		want = append(want[:last:last], slices.Repeat([]string{"*"}, max(1, len(have)-last))...)
	}
	if len(have) != len(want) {
		return false
	}
	for i, segment := range want {
		head, _, hasStar := strings.Cut(segment, "*")
		if !hasStar && segment == have[i] {
			continue
		}
		matched, err := path.Match(segment, have[i])
		if err != nil || !matched || !hasStar || len(have[i]) > maxSegment ||
			!plainSegment.MatchString(have[i][len(head):]) {
			return false
		}
	}
	return true
}

// isPlainPath reports that no server can read p as a path outside the one it appears to name.
func isPlainPath(p string) bool {
	for range 3 { // a server behind a proxy may unescape again what the proxy has unescaped
		segments := strings.Split(p, "/")
		if slices.Contains(segments, ".") || slices.Contains(segments, "..") || strings.ContainsAny(p, "\\;") {
			return false
		}
		next, err := url.PathUnescape(p)
		if err != nil {
			return false
		}
		if next == p {
			return strings.HasPrefix(p, "/") && !strings.ContainsRune(p, 0)
		}
		p = next
	}
	return false
}

func isBelowPrefix(p, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	if prefix == "" {
		return true
	}
	want, have := strings.Split(prefix, "/"), strings.Split(p, "/")
	if len(have) < len(want) {
		return false
	}
	for i, segment := range want {
		if segment != have[i] && (segment != "*" || have[i] == "") {
			return false
		}
	}
	return true
}

// trimLastSegment returns o with the parent of its path, if the last segment is name; otherwise o.
func (o Origin) trimLastSegment(name string) Origin {
	if path.Base(o.Path) == name {
		o.Path = path.Dir(o.Path)
	}
	return o
}
