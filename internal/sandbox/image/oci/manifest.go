// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Settings are what an image says about how to run it. They are data: nothing follows them.
type Settings struct {
	Env        []string `json:"env,omitempty"`
	User       string   `json:"user,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	WorkingDir string   `json:"workingDir,omitempty"`
	Volumes    []string `json:"volumes,omitempty"`
}

// A resolvedImage is an image whose manifest and configuration were read and verified.
type resolvedImage struct {
	manifest v1.Hash
	layers   []v1.Descriptor
	diffs    []v1.Hash // of the layers without compression
	settings Settings
}

// resolveManifest reads the manifest for this platform that the reference's digest leads to, and its
// configuration.
func resolveManifest(ctx context.Context, s source, r Reference, l Limits) (f resolvedImage, err error) {
	if f.manifest, err = v1.NewHash(r.Digest); err != nil || f.manifest.Algorithm != "sha256" {
		return f, newStopError(CodeFormat, "use an image with a SHA-256 digest", "unsupported digest %q", r.Digest)
	}
	m, index, err := readManifest(ctx, s, f.manifest, -1)
	if err != nil {
		return f, err
	}
	if index {
		chosen, err := forPlatform(m.Manifests)
		if err != nil {
			return f, err
		}
		f.manifest = chosen.Digest
		if m, index, err = readManifest(ctx, s, f.manifest, chosen.Size); err != nil {
			return f, err
		}
		if index {
			return f, newStopError(CodeFormat, "name the digest of the inner index",
				"the index has an index for this platform")
		}
	}
	return f, f.readConfig(ctx, s, m, l)
}

// A document is a manifest or an index.
type document struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     types.MediaType `json:"mediaType"`
	Config        v1.Descriptor   `json:"config"`
	Layers        []v1.Descriptor `json:"layers"`
	Manifests     []v1.Descriptor `json:"manifests"`
}

// readManifest reads the manifest or index with digest; size is -1 if only the digest is known.
func readManifest(ctx context.Context, s source, digest v1.Hash, size int64) (m document, index bool, err error) {
	data, err := readPart(ctx, s, manifests, digest, size)
	if err != nil {
		return m, false, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, false, newStopError(CodeFormat, "use an OCI image or a Docker image of schema 2",
			"manifest %s is not valid", digest)
	}
	index = m.MediaType.IsIndex() || m.MediaType == "" && len(m.Manifests) > 0
	switch {
	case m.SchemaVersion != 2:
		return m, false, newStopError(CodeFormat, "push the image again with a current tool",
			"manifest %s has schema version %d; only 2 is supported", digest, m.SchemaVersion)
	case !index && m.MediaType != "" && !m.MediaType.IsImage():
		return m, false, newStopError(CodeFormat, "name the digest of an image", "%s is %q, not an image", digest,
			m.MediaType)
	case index == (len(m.Layers) > 0 || m.Config.Size > 0):
		return m, false, newStopError(CodeFormat, "name the digest of an image",
			"%s is not clearly an image or an index", digest)
	}
	return m, index, nil
}

// readPart reads and verifies a small part.
func readPart(ctx context.Context, s source, kind string, digest v1.Hash, size int64) ([]byte, error) {
	if digest.Algorithm != "sha256" {
		return nil, newStopError(CodeFormat, "use an image with SHA-256 digests", "unsupported digest %q",
			digest.String())
	}
	if size > maxManifest {
		return nil, tooMuch("%s has %d bytes; at most %d are read", digest, size, maxManifest)
	}
	r, err := s.open(ctx, kind, digest)
	if err != nil {
		return nil, asPull(digest, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	switch {
	case err != nil:
		return nil, asPull(digest, err)
	case len(data) > maxManifest:
		return nil, tooMuch("%s has more than %d bytes", digest, maxManifest)
	case size < 0:
		size = int64(len(data))
	}
	_, err = io.Copy(io.Discard, verifyReader(strings.NewReader(string(data)), digest, size))
	return data, err
}

// asPull makes an error of reading a part a StopError.
func asPull(digest v1.Hash, err error) error {
	var known *proposal.StopError
	if errors.As(err, &known) || err == nil {
		return err
	}
	return cannotPull(digest.String(), err)
}

// Platform is this machine's, as images name it.
func Platform() string { return "linux/" + runtime.GOARCH }

func forPlatform(list []v1.Descriptor) (v1.Descriptor, error) {
	var others []string
	for _, d := range list {
		p := d.Platform
		if p == nil {
			continue
		}
		if p.OS == "linux" && p.Architecture == runtime.GOARCH &&
			(p.Variant == "" || p.Variant == "v8" || p.Variant == "v1") {
			return d, nil
		}
		if len(others) < 10 && !slices.Contains(others, p.String()) {
			others = append(others, p.String())
		}
	}
	return v1.Descriptor{}, newStopError(CodePlatform, "use an image for "+Platform(),
		"the image is not for %s; it is for %.200q", Platform(), strings.Join(others, ", "))
}

// readConfig reads the configuration of m and checks its layers.
func (f *resolvedImage) readConfig(ctx context.Context, s source, m document, l Limits) error {
	if len(m.Layers) > l.Layers {
		return tooMuch("it has %d layers; at most %d are read", len(m.Layers), l.Layers)
	}
	data, err := readPart(ctx, s, blobs, m.Config.Digest, m.Config.Size)
	if err != nil {
		return err
	}
	var c v1.ConfigFile
	if err := json.Unmarshal(data, &c); err != nil {
		return newStopError(CodeFormat, "name the digest of a container image", "the configuration %s is not valid",
			m.Config.Digest)
	}
	if c.OS != "linux" || c.Architecture != runtime.GOARCH {
		return newStopError(CodePlatform, "use an image for "+Platform(), "the image is for %.50q",
			c.OS+"/"+c.Architecture)
	}
	if len(c.RootFS.DiffIDs) != len(m.Layers) {
		return newStopError(CodeDigest, "do not use this image", "the manifest has %d layers, its configuration %d",
			len(m.Layers), len(c.RootFS.DiffIDs))
	}
	for _, d := range m.Layers {
		if _, known := compressions[d.MediaType]; !known {
			return newStopError(CodeFormat,
				"use an image whose layers are tar files, with gzip, zstd or no compression, in the registry itself", "unsupported layer type %.100q", d.MediaType)
		}
	}
	f.layers, f.diffs, f.settings = m.Layers, c.RootFS.DiffIDs, settingsFrom(c.Config)
	return nil
}

func settingsFrom(c v1.Config) Settings {
	s := Settings{Env: c.Env, User: c.User, Entrypoint: c.Entrypoint, Cmd: c.Cmd, WorkingDir: c.WorkingDir}
	for at := range c.Volumes {
		s.Volumes = append(s.Volumes, at)
	}
	slices.Sort(s.Volumes)
	return s
}
