// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const maxManifest = 1 << 20

// pullBundle downloads a bundle from a registry: the pinned manifest, and the single layer that
// it names. Both are compared with their digests.
func pullBundle(ctx context.Context, p parsed, o Options) ([]byte, error) {
	r, err := openRepository(ctx, p, o)
	if err != nil {
		return nil, r.cannotFetch(ctx, err)
	}
	raw, mediaType, err := r.fetchContent(ctx, "manifests", p.digest, maxManifest)
	if errors.Is(err, errTooLarge) {
		return nil, stopError(CodeBundle, "pin the digest of the bundle's own manifest", nil,
			"the manifest of %s is too large, or not that of a bundle", p.shown)
	}
	if err != nil {
		return nil, r.cannotFetch(ctx, err)
	}
	layer, err := bundleLayer(p, mediaType, raw)
	if err != nil {
		return nil, err
	}
	data, _, err := r.fetchContent(ctx, "blobs", layer.Digest.String(), layer.Size)
	if errors.Is(err, errTooLarge) || err == nil && int64(len(data)) < layer.Size {
		return nil, r.digestMismatch(errors.New("the layer is not of the size that the manifest says"))
	}
	if err != nil {
		return nil, r.cannotFetch(ctx, err)
	}
	return data, nil
}

// A repository of a registry, which is asked without credentials.
type repository struct {
	parsed
	options Options
	client  *http.Client
	base    url.URL
}

func openRepository(ctx context.Context, p parsed, o Options) (r repository, err error) {
	r = repository{parsed: p, options: o}
	host, path, _ := strings.Cut(p.place, "/")
	registry, err := name.NewRegistry(host)
	if err != nil {
		return r, stopError(CodeSource, hintSpec, err, "%s does not name a repository", p.shown)
	}
	repo := registry.Repo(path)
	r.client = newClient(o, isLoopback(hostOf(host)))
	r.base = url.URL{Scheme: "https", Host: registry.RegistryStr(), Path: "/v2/" + repo.RepositoryStr() + "/"}
	r.client.Transport, err = transport.NewWithContext(ctx, registry, authn.Anonymous,
		transport.NewUserAgent(r.client.Transport, "fumehood"), []string{repo.Scope(transport.PullScope)})
	return r, err
}

// fetchContent reads what has a digest, of at most max bytes. The transport replaces https by http for a
// registry on this machine that does not know it.
func (r repository) fetchContent(
	ctx context.Context, kind, digest string, max int64,
) (data []byte, mediaType string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base.JoinPath(kind, digest).String(), nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Accept", string(types.OCIManifestSchema1)+", */*")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("%s returned status %d for %s/%s", r.base.Host, response.StatusCode, kind, digest)
	}
	if response.ContentLength > max {
		return nil, "", errTooLarge
	}
	data, err = io.ReadAll(io.LimitReader(response.Body, max+1))
	switch {
	case err != nil:
		return nil, "", err
	case int64(len(data)) > max:
		return nil, "", errTooLarge
	case Digest(data) != digest:
		return nil, "", r.digestMismatch(fmt.Errorf("%s/%s has the digest %s", kind, digest, Digest(data)))
	}
	mediaType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	return data, mediaType, nil
}

func (r repository) digestMismatch(err error) error {
	return stopError(CodeDigest, "check whether it was changed, or damaged in transit", err,
		"%s does not have the pinned digest", r.shown)
}

func (r repository) cannotFetch(ctx context.Context, err error) error {
	if already := (&proposal.StopError{}); errors.As(err, &already) {
		return err
	}
	return notFetched(ctx, r.parsed, r.options, err)
}

// bundleLayer is the only layer of a manifest, of the type that opa uses for bundles.
func bundleLayer(p parsed, mediaType string, raw []byte) (layer v1.Descriptor, err error) {
	if mediaType != string(types.OCIManifestSchema1) {
		return layer, stopError(CodeBundle, "pin the digest of the bundle's own manifest", nil,
			"%s is a %.100q, not a manifest of one bundle", p.shown, mediaType)
	}
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return layer, stopError(CodeBundle, "push it again", err, "cannot read the manifest of %s", p.shown)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != types.OCILayer || m.Layers[0].Digest.Algorithm != "sha256" {
		return layer, stopError(CodeBundle,
			"push the bundle as one layer of the type "+string(types.OCILayer)+", as for opa", nil,
			"%s does not contain exactly one bundle", p.shown)
	}
	if layer = m.Layers[0]; layer.Size < 0 || layer.Size > maxArchive {
		return layer, tooLarge(p.shown)
	}
	return layer, nil
}

func hostOf(host string) string {
	name, _, _ := strings.Cut(host, ":")
	return name
}
