// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"io/fs"
	"net"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

const maxSpec = 2048

// A parsed spec.
type parsed struct {
	kind   string
	shown  string // as shown in messages and reports
	place  string // a directory, a file, a URL, registry/repository, owner/repository, or a path in a commit
	file   string // of github
	rev    string // of git and github
	digest string // "" if not pinned
}

const hintSpec = "name a directory, git:REV:DIR, base:DIR, FILE.tar.gz, https://HOST/FILE.tar.gz@sha256:HEX, oci://REGISTRY/REPOSITORY@sha256:HEX or github:OWNER/REPO/FILE.tar.gz@REF"

// parseSpec reads a spec. A directory whose name looks like another kind is written ./NAME.
func parseSpec(spec string) (parsed, error) {
	switch {
	case spec == "":
		return parsed{}, stopError(CodeSource, hintSpec, nil, "the policy's name is empty")
	case len(spec) > maxSpec || !utf8.ValidString(spec) || strings.ContainsFunc(spec, unicode.IsControl):
		return parsed{}, stopError(CodeSource, hintSpec, nil,
			"the policy's name is too long or holds control characters")
	case strings.HasPrefix(spec, "git:"):
		return parseGit(spec)
	case strings.HasPrefix(spec, "base:"):
		return parseDirOf(parsed{kind: KindBase, shown: spec, place: spec[len("base:"):]})
	case strings.HasPrefix(spec, "github:"):
		return parseGitHub(spec)
	case strings.HasPrefix(spec, "oci:"):
		return parseOCI(spec)
	case strings.HasPrefix(spec, "https:"), strings.HasPrefix(spec, "http:"):
		return parseURL(spec)
	}
	place, digest, pinned := strings.Cut(spec, "@sha256:")
	if !IsBundleName(place) {
		return parsed{kind: KindFolder, shown: shownPath(spec), place: spec}, nil
	}
	p := parsed{kind: KindBundle, shown: shownPath(place), place: place}
	if !pinned {
		return p, nil
	}
	return p.pinDigest(digest)
}

func parseGit(spec string) (parsed, error) {
	rev, folder, ok := strings.Cut(spec[len("git:"):], ":")
	if !ok || rev == "" {
		return parsed{}, stopError(CodeSource, "write git:REV:DIR, for example git:main:policy", nil,
			"%q does not name a commit and a directory", spec)
	}
	if strings.HasPrefix(rev, "-") {
		return parsed{}, stopError(CodeSource, "name a branch, a tag or a commit", nil,
			"%q is not a valid name of a commit", rev)
	}
	return parseDirOf(parsed{kind: KindGit, shown: spec, rev: rev, place: folder})
}

// parseDirOf checks the path of a directory in a commit; "." is the whole commit.
func parseDirOf(p parsed) (parsed, error) {
	clean := path.Clean(strings.TrimSuffix(p.place, "/"))
	if p.place == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") ||
		strings.Contains(clean, `\`) {
		return parsed{}, stopError(CodeSource,
			"name a directory relative to the top of the repository, for example "+p.kind+":…policy", nil,
			"%q does not name a directory in a commit", p.shown)
	}
	if p.place = clean; clean == "." {
		p.place = ""
	}
	return p, nil
}

func parseURL(spec string) (parsed, error) {
	place, digest, pinned := strings.Cut(spec, "@sha256:")
	u, err := url.Parse(place)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return parsed{}, stopError(CodeSource, hintSpec, nil,
			"invalid address of the policy: it needs a host, and must not have a user or a fragment")
	}
	// a query may contain a credential
	p := parsed{kind: KindHTTPS, place: place, shown: u.Scheme + "://" + u.Host + u.Path}
	switch {
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return parsed{}, stopError(CodeSource, "use https", nil, "%s is not encrypted", p.shown)
	case !pinned:
		return parsed{}, notPinned(p)
	}
	return p.pinDigest(digest)
}

var repositoryRE = pattern.New(`^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)

func parseOCI(spec string) (parsed, error) {
	place, digest, pinned := strings.Cut(strings.TrimPrefix(spec, "oci:"), "@sha256:")
	p := parsed{kind: KindOCI, shown: "oci:" + place, place: strings.TrimPrefix(place, "//")}
	if !strings.HasPrefix(place, "//") || !repositoryRE.MatchString(p.place) {
		return parsed{}, stopError(CodeSource, "write oci://REGISTRY/REPOSITORY@sha256:HEX, without a tag", nil,
			"%q does not name a repository of a registry", spec)
	}
	if !pinned {
		return parsed{}, notPinned(p)
	}
	return p.pinDigest(digest)
}

// gitHubRE splits github:OWNER/REPO/PATH@REF, whose PATH is optional.
var gitHubRE = pattern.New(`^github:([A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100})((?:/[A-Za-z0-9_.-]+)*)@([A-Za-z0-9_][A-Za-z0-9_./-]{0,199})$`)

// gitHubFile is the bundle's file of a repository if the spec names none.
const gitHubFile = "policy.tar.gz"

func parseGitHub(spec string) (parsed, error) {
	m := gitHubRE.FindStringSubmatch(spec)
	if m == nil || !fs.ValidPath(m[1]+m[2]) || !fs.ValidPath(m[3]) {
		return parsed{}, stopError(CodeSource, "write github:OWNER/REPO/FILE.tar.gz@REF, for example github:acme/policy@main", nil,
			"%q does not name a repository on GitHub and a branch, tag or commit", spec)
	}
	p := parsed{kind: KindGitHub, shown: spec, place: m[1], rev: m[3],
		file: cmp.Or(strings.TrimPrefix(m[2], "/"), gitHubFile)}
	if !IsBundleName(p.file) {
		return parsed{}, stopError(CodeSource, "name the file that fumehood policy bundle build wrote", nil,
			"%q in %s is not the name of a bundle", p.file, spec)
	}
	return p, nil
}

func notPinned(p parsed) error {
	return stopError(CodeDigest, "add @sha256: and the digest: without it, the server could return another policy tomorrow", nil, "%s is not pinned", p.shown)
}

var hexRE = pattern.New(`^[0-9a-f]{64}$`)

func (p parsed) pinDigest(digest string) (parsed, error) {
	if !hexRE.MatchString(digest) {
		return parsed{}, stopError(CodeDigest, "write @sha256: and 64 lower-case hex digits", nil,
			"the digest of %s is invalid", p.shown)
	}
	p.digest = "sha256:" + digest
	return p, nil
}

// isLoopback reports whether a host name can only mean this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsBundleName reports whether a file of this name is read as a bundle.
func IsBundleName(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}
