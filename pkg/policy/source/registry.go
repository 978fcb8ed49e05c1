// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const maxManifest = 1 << 20

// pull downloads a bundle from a registry: the pinned manifest, and the single layer that
// it names. Both are compared with their digests.
func pull(ctx context.Context, p parsed, o Options) ([]byte, error) {
	data, err := pullBundle(ctx, p, o)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return nil, stop(CodeDigest, "check whether it was changed, or damaged in transit", err, "%s does not have the pinned digest", p.shown)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, notFetched(ctx, p, o, err)
	}
	return nil, asStop(err, CodeFetch, hintFetch, "cannot fetch %s", p.shown)
}

func pullBundle(ctx context.Context, p parsed, o Options) ([]byte, error) {
	repository, err := remote.NewRepository(p.place)
	if err != nil {
		return nil, stop(CodeSource, hintSpec, err, "%s does not name a repository", p.shown)
	}
	repository.PlainHTTP = loopback(hostOf(repository.Reference.Host()))
	repository.MaxMetadataBytes = maxManifest
	repository.Client = &auth.Client{Client: client(o, repository.PlainHTTP), Header: http.Header{"User-Agent": {"fumehood"}}}
	found, err := repository.Manifests().Resolve(ctx, p.digest)
	if err != nil {
		return nil, err
	}
	if found.Size > maxManifest || found.Digest.String() != p.digest {
		return nil, stop(CodeBundle, "pin the digest of the bundle's own manifest", nil, "the manifest of %s is too large, or not that of a bundle", p.shown)
	}
	raw, err := content.FetchAll(ctx, repository.Manifests(), found)
	if err != nil {
		return nil, err
	}
	if digest.FromBytes(raw).String() != p.digest { // even if the library has compared it
		return nil, wrongDigest(p, digest.FromBytes(raw).String())
	}
	layer, err := bundleLayer(p, found.MediaType, raw)
	if err != nil {
		return nil, err
	}
	data, err := content.FetchAll(ctx, repository.Blobs(), layer)
	if err == nil && digest.FromBytes(data) != layer.Digest {
		err = wrongDigest(p, digest.FromBytes(data).String())
	}
	return data, err
}

// bundleLayer is the only layer of a manifest, of the type that opa uses for bundles.
func bundleLayer(p parsed, mediaType string, raw []byte) (ocispec.Descriptor, error) {
	var m ocispec.Manifest
	none := ocispec.Descriptor{}
	if mediaType != ocispec.MediaTypeImageManifest {
		return none, stop(CodeBundle, "pin the digest of the bundle's own manifest", nil, "%s is a %.100q, not a manifest of one bundle", p.shown, mediaType)
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&m); err != nil {
		return none, stop(CodeBundle, "push it again", err, "cannot read the manifest of %s", p.shown)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != ocispec.MediaTypeImageLayerGzip || m.Layers[0].Digest.Validate() != nil || m.Layers[0].Digest.Algorithm() != digest.SHA256 {
		return none, stop(CodeBundle, "push the bundle as one layer of the type "+ocispec.MediaTypeImageLayerGzip+", as for opa", nil, "%s does not contain exactly one bundle", p.shown)
	}
	if m.Layers[0].Size < 0 || m.Layers[0].Size > maxArchive {
		return none, tooLarge(p.shown)
	}
	m.Layers[0].Data, m.Layers[0].URLs = nil, nil
	return m.Layers[0], nil
}

func hostOf(host string) string {
	name, _, _ := strings.Cut(host, ":")
	return name
}
