// SPDX-License-Identifier: Apache-2.0

// Package source reads policy from where a team keeps it, and reports exactly what it
// read: a directory, a directory at a commit, or a bundle as opa makes them.
//
// A spec is one of
//
//	./policy                                     a directory
//	git:main:policy                              a directory at a commit of a repository on this machine
//	base:.github/fumehood                        a directory at the base commit of the pull request of this job
//	policy.tar.gz                                a bundle; policy.tar.gz@sha256:<hex> pins it
//	https://host/policy.tar.gz@sha256:<hex>      a bundle, pinned by the digest of its file
//	oci://registry/repository@sha256:<hex>       a bundle in a registry, pinned by the digest of its manifest
//	github:owner/repo/policy.tar.gz@main         a bundle in a repository on GitHub, at what a ref names now
//
// It promises:
//   - A fetched bundle has the pinned digest, whatever the server and the redirects, or
//     there is an error. Plain http is for loopback only.
//   - The size of a bundle is limited before it is in memory, and reading it writes no
//     file. Links, devices, names that leave the bundle or appear twice, WebAssembly and
//     deltas are refused, and so are modules and data outside the roots of its manifest.
//   - If a key is given, every bundle must be signed with it. The signature must cover
//     all files, and no file may be missing, by hashes not weaker than SHA-256. The key
//     determines the algorithm, never the bundle.
//   - If a minimum revision is given, no older bundle is accepted.
//   - A bundle on GitHub needs both. A copy of one replaces it only if GitHub does not answer, and only
//     for as long as the copy itself, which is verified again, says.
//
// Its errors are *proposal.StopErrors whose code begins with "policy.".
//
// It does not check rules: package policy does. A directory is read as it is, and anyone
// who can write to it can change the policy. A signature shows who signed, not when: an
// old bundle is still signed, so there is a minimum revision.
package source

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Origin is where a layer came from.
type Origin = proposal.PolicyOrigin

// The kinds of origins.
const (
	KindShipped = "shipped"
	KindFolder  = "folder"
	KindGit     = "git"
	KindBase    = "base"
	KindBundle  = "bundle"
	KindHTTPS   = "https"
	KindOCI     = "oci"
	KindGitHub  = "github"
)

// Options are the requirements for a source. The zero value reads directories, and bundles
// without a required signature, and no repository.
type Options struct {
	// One of Keys must have signed every bundle; none requires no signature.
	Keys Keys
	// Scope is the required scope of the signature.
	Scope string
	// MinimumRevision is the oldest revision that a bundle may have: an integer or an
	// RFC 3339 time; "" accepts any.
	MinimumRevision string
	// Repository opens the repository that git: and base: are read from.
	Repository func(context.Context) (Repository, error)
	// Base is the base commit of the pull request, from the event that started the job.
	Base func() (string, error)
	// GitHub reads the file path of repository, OWNER/NAME, at the commit that ref names, and returns
	// that, too; nil reads none. Its error has the code of package github.
	GitHub func(ctx context.Context, repository, ref, path string) (data []byte, commit string, err error)
	// CopyDir is the directory of the last bundle that GitHub returned; "" for none. Anyone who can write
	// to it can make a copy that was signed appear newer than it is.
	CopyDir string
	// Now is time.Now if it is nil.
	Now func() time.Time
	// Roots are the root certificates for servers; nil is the system's.
	Roots *x509.CertPool
	// Timeout limits one fetch; 0 is a minute.
	Timeout time.Duration
}

// A Repository reads commits without a work tree, and runs no program that the repository
// or its configuration names. If it is an io.Closer, it is closed after use.
type Repository interface {
	// Commit returns the full id of the commit that rev names.
	Commit(ctx context.Context, rev string) (string, error)
	// ReadDir reads the files below the directory path that wanted selects. Unfit names,
	// one line each, entries that are not plain files. A missing path is an error.
	ReadDir(ctx context.Context, commit, path string, wanted func(name string) bool) (files []policy.File,
		unfit []string, err error)
}

// Read reads the layer that spec names. The caller sets its Role.
func Read(ctx context.Context, spec string, o Options) (policy.Layer, Origin, error) {
	p, err := parseSpec(spec)
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	origin := Origin{Kind: p.kind, Spec: p.shown}
	var l policy.Layer
	switch p.kind {
	case KindFolder:
		l, err = policy.ReadDirectory(p.place)
	case KindGitHub:
		return readGitHub(ctx, p, o, origin)
	case KindGit, KindBase:
		l, origin.Commit, err = readCommit(ctx, p, o)
	default:
		return readBundle(ctx, p, o, origin)
	}
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	origin.Digest = l.Digest()
	return l, origin, nil
}

// IsBundle reports whether spec names a bundle, to which Key and MinimumRevision apply.
func IsBundle(spec string) bool {
	p, err := parseSpec(spec)
	return err == nil && slices.Contains([]string{KindBundle, KindHTTPS, KindOCI, KindGitHub}, p.kind)
}

// ShippedOrigin is the origin of the policy that fumehood ships.
func ShippedOrigin() (Origin, error) {
	l, err := policy.ShippedLayer()
	return Origin{Kind: KindShipped, Spec: policy.DefaultLayer, Role: policy.Grants.String(), Digest: l.Digest()}, err
}

// WriteOrigin writes the properties of a bundle, one on each line. Its error is w's.
func WriteOrigin(w io.Writer, o Origin) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	signed := o.SignedBy
	if signed == "" {
		signed = "not checked: no --policy-key is given"
	}
	for _, row := range [][2]string{{"bundle", o.Spec}, {"digest", o.Digest}, {"revision", o.Revision},
		{"signed by", signed}} {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], terminal.EscapeLine(row[1]))
		}
	}
	return table.Flush()
}

// IsUnread reports whether err means that a policy could not be read, and not that it was
// read and refused.
func IsUnread(err error) bool {
	f := proposal.FailureOf(err)
	return f != nil && slices.Contains([]string{CodeFetch, CodeKey, CodeSource, codeMissing}, f.Code)
}

// readBundle reads the bundle's bytes and opens them.
func readBundle(ctx context.Context, p parsed, o Options, origin Origin) (policy.Layer, Origin, error) {
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var data []byte
	var err error
	switch p.kind {
	case KindBundle:
		data, err = ReadFile(p.place)
	case KindHTTPS:
		data, err = fetchBundle(ctx, p, o)
	case KindOCI:
		data, err = pullBundle(ctx, p, o)
	}
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	if p.kind != KindOCI {
		if origin.Digest = Digest(data); p.digest != "" && p.digest != origin.Digest {
			return policy.Layer{}, Origin{}, wrongDigest(p, origin.Digest)
		}
	} else {
		origin.Digest = p.digest // pull has compared it
	}
	b, err := Open(p.shown, data, o)
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	origin.Revision, origin.SignedBy = b.Revision, b.SignedBy
	return b.Layer, origin, nil
}

// shownPath keeps personal directories out of reports: it is the last name of an absolute
// path.
func shownPath(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Base(path)
	}
	return path
}
