// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// The prefixes of the references that Parse accepts.
const (
	Registry = "image:"       // image:REPOSITORY[:TAG]@sha256:…
	Layout   = "oci:"         // oci:DIR[@sha256:…], an OCI image layout
	Archive  = "oci-archive:" // oci-archive:FILE[@sha256:…], a tar file of one
)

// A Reference names an image.
type Reference struct {
	Kind   string // Registry, Layout or Archive
	Target string // a repository, or an absolute path
	Digest string // "sha256:…" of a manifest or an index; "" for the only image of a layout
	tag    string
}

// Is reports whether value has a prefix of a reference to an image.
func Is(value string) bool {
	return strings.HasPrefix(value, Registry) || strings.HasPrefix(value, Layout) || strings.HasPrefix(value, Archive)
}

// Parse reads a reference without asking anyone. Its error is a *proposal.StopError with
// CodeReference, or CodeUnpinned for a repository without a digest.
func Parse(value string) (Reference, error) {
	kind, rest, _ := strings.Cut(value, ":")
	r := Reference{Kind: kind + ":"}
	if r.Kind == Registry {
		return r.parseRepository(rest)
	}
	const hint = "give an absolute path: oci:/path/to/layout or oci-archive:/path/to/file.tar, each with @sha256:… if it has several images"
	path, hex, pinned := strings.Cut(rest, "@sha256:")
	if r.Kind != Layout && r.Kind != Archive || !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return r, newStopError(CodeReference, hint, "invalid image reference %q", value)
	}
	r.Target = filepath.Clean(path)
	if !pinned {
		return r, nil
	}
	digest, err := v1.NewHash("sha256:" + hex)
	if err != nil {
		return r, newStopError(CodeReference, hint, "invalid digest in the image reference %q", value)
	}
	r.Digest = digest.String()
	return r, nil
}

func (r Reference) parseRepository(text string) (Reference, error) {
	if pinned, err := name.NewDigest(text); err == nil && strings.HasPrefix(pinned.DigestStr(), "sha256:") &&
		!strings.Contains(text, "://") {
		r.Target, r.Digest = pinned.Context().Name(), pinned.DigestStr()
		return r, nil
	}
	tag, err := name.NewTag(text)
	if err != nil || strings.Contains(text, "@") || strings.Contains(text, "://") {
		return r, newStopError(CodeReference, "use image:REPOSITORY@sha256:…", "invalid image reference %q",
			Registry+text)
	}
	r.Target, r.tag = tag.Context().Name(), tag.TagStr()
	return r, newStopError(CodeUnpinned, "add the image's digest: image:"+text+"@sha256:…",
		"the image %q has no digest: what a tag names can change at any time", text)
}

// String returns r with its digest. It has no paths of the host.
func (r Reference) String() string {
	text := strings.TrimSuffix(r.Kind, ":")
	if r.Kind == Registry {
		text = Registry + r.Target
	}
	return text + "@" + r.Digest
}

// askDigest returns the digest that r's tag has now, for a hint; "" if it cannot be found.
func (r Reference) askDigest(ctx context.Context, keys authn.Keychain) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := dialRegistry(ctx, r, keys)
	if err != nil {
		return ""
	}
	return s.findDigest(ctx, r.tag)
}
