// SPDX-License-Identifier: Apache-2.0

// Package source reads policy from where a team keeps it, and says exactly what was
// read: a folder, a folder at a commit, or a bundle as opa makes them.
//
// A spec is one of
//
//	./policy                                     a folder
//	git:main:policy                              a folder at a commit of a repository on this machine
//	base:.github/fumehood                        a folder at the base commit of the pull request of this job
//	policy.tar.gz                                a bundle; policy.tar.gz@sha256:<hex> pins it
//	https://host/policy.tar.gz@sha256:<hex>      a bundle, pinned by the digest of its file
//	oci://registry/repository@sha256:<hex>       a bundle in a registry, pinned by the digest of its manifest
//
// It promises:
//   - What is fetched is what was pinned, whoever answers and wherever a redirect
//     leads, or it is nothing. Plain http goes to loopback alone.
//   - A bundle is read within bounds, before it is held; it writes no file. Links,
//     devices, names that leave the bundle or stand twice, WebAssembly and deltas are
//     refused, and modules and data outside the roots of its manifest.
//   - Where a key is given, every bundle must be signed with it, with every file
//     covered and none missing, by hashes no weaker than SHA-256. The algorithm follows
//     from the key, never from the bundle.
//   - Where a minimum revision is given, no older bundle is accepted.
//
// Its errors are *proposal.StopErrors whose code begins with "policy.".
//
// It does not judge rules: that is package policy's. A folder is read as it lies there,
// and who can write to it writes policy. A signature says who signed, not when: an old
// bundle stays signed, which is what the minimum revision is for.
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

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// An Origin says where a layer came from.
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
)

// Options say what is asked of a source. The zero value reads folders and bundles that
// need no signature, and no repository.
type Options struct {
	// Key must have signed every bundle; nil is none.
	Key *Key
	// Scope is the signature's scope, which must be this.
	Scope string
	// MinimumRevision is the oldest revision that a bundle may have: an integer or an
	// RFC 3339 time; "" is any.
	MinimumRevision string
	// Repository opens the repository that git: and base: are read from.
	Repository func(context.Context) (Repository, error)
	// Base is the base commit of the pull request, from the event that started the job.
	Base func() (string, error)
	// Roots are the certificates that sign for servers; nil is the system's.
	Roots *x509.CertPool
	// Timeout bounds one fetch; 0 is a minute.
	Timeout time.Duration
}

// A Repository reads commits without a work tree, and runs nothing that the repository
// or its configuration names. One that is an io.Closer is closed after it was read.
type Repository interface {
	// Commit is the full id of the commit that rev names.
	Commit(ctx context.Context, rev string) (string, error)
	// Folder reads the files below path that wanted takes. Unfit names, one line each,
	// what below path is no plain file. A path that is not there is an error.
	Folder(ctx context.Context, commit, path string, wanted func(name string) bool) (files []policy.File, unfit []string, err error)
}

// Read reads the layer that spec names. Its Role is for the caller to set.
func Read(ctx context.Context, spec string, o Options) (policy.Layer, Origin, error) {
	p, err := parse(spec)
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	origin := Origin{Kind: p.kind, Spec: p.shown}
	var l policy.Layer
	switch p.kind {
	case KindFolder:
		l, err = policy.Dir(p.place)
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

// IsBundle reports whether spec names a bundle, which a Key and a MinimumRevision are
// about.
func IsBundle(spec string) bool {
	p, err := parse(spec)
	return err == nil && (p.kind == KindBundle || p.kind == KindHTTPS || p.kind == KindOCI)
}

// Shipped is the origin of the policy that fumehood ships.
func Shipped() (Origin, error) {
	l, err := policy.Shipped()
	return Origin{Kind: KindShipped, Spec: policy.DefaultLayer, Role: policy.Grants.String(), Digest: l.Digest()}, err
}

// WriteOrigin writes what is known of a bundle, a line each. Its error is w's.
func WriteOrigin(w io.Writer, o Origin) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	signed := o.SignedBy
	if signed == "" {
		signed = "nobody whose key was given"
	}
	for _, row := range [][2]string{{"bundle", o.Spec}, {"digest", o.Digest}, {"revision", o.Revision}, {"signed by", signed}} {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], terminal.Line(row[1]))
		}
	}
	return table.Flush()
}

// Unread reports whether err says that a policy could not be had, and not that it was read
// and refused.
func Unread(err error) bool {
	f := proposal.FailureOf(err)
	return f != nil && slices.Contains([]string{CodeFetch, CodeKey, CodeSource, codeMissing}, f.Code)
}

// readBundle gets the bundle's bytes and opens them.
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
		data, err = fetch(ctx, p, o)
	case KindOCI:
		data, err = pull(ctx, p, o)
	}
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	if p.kind != KindOCI {
		if origin.Digest = Digest(data); p.digest != "" && p.digest != origin.Digest {
			return policy.Layer{}, Origin{}, wrongDigest(p, origin.Digest)
		}
	} else {
		origin.Digest = p.digest // which pull has compared
	}
	b, err := Open(p.shown, data, o)
	if err != nil {
		return policy.Layer{}, Origin{}, err
	}
	origin.Revision, origin.SignedBy = b.Revision, b.SignedBy
	return b.Layer, origin, nil
}

// shownPath keeps a person's folders out of reports: of an absolute path, the last name.
func shownPath(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Base(path)
	}
	return path
}
