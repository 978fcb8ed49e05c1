// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// compressions are the media types of layers that are read, with what opens them. Layers that
// are to be had elsewhere than in the registry ("foreign", "nondistributable") are not read.
var compressions = map[types.MediaType]func(io.Reader) (io.ReadCloser, error){
	types.OCIUncompressedLayer:    openPlain,
	types.DockerUncompressedLayer: openPlain,
	types.OCILayer:                openGzip,
	types.DockerLayer:             openGzip,
	types.OCILayerZStd:            openZstd,
}

func openPlain(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil }

func openGzip(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }

// maxWindow is the memory that a layer may ask zstd for.
const maxWindow = 64 << 20

func openZstd(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// A boundedReader is a layer without compression. It ends with an error at the first byte too many.
type boundedReader struct {
	r          io.Reader
	compressed *counter
	ratio      int64
	total      *int64 // bytes that all layers may still have
	read       int64
	hash       hash.Hash
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.read += int64(n)
	*b.total -= int64(n)
	b.hash.Write(p[:n])
	switch {
	case *b.total < 0:
		return 0, tooMuch("its layers have too many bytes without compression")
	case b.read > freeBytes+b.ratio*b.compressed.n:
		return 0, tooMuch("a layer has more than %d bytes for each compressed byte", b.ratio)
	}
	return n, err
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// applyLayer reads and verifies a layer, and applies it to b's tree.
func (b *builder) applyLayer(ctx context.Context, s source, d v1.Descriptor, diff v1.Hash) error {
	if d.Digest.Algorithm != "sha256" || d.Size < 0 {
		return newStopError(CodeFormat, "use an image with SHA-256 digests", "unsupported layer %q of %d bytes",
			d.Digest.String(), d.Size)
	}
	blob, err := s.open(ctx, blobs, d.Digest)
	if err != nil {
		return asPull(d.Digest, err)
	}
	defer blob.Close()
	compressed := &counter{r: verifyReader(blob, d.Digest, d.Size)}
	content := bufio.NewReaderSize(compressed, 1<<18)
	layer, err := compressions[d.MediaType](content)
	if err != nil {
		return layerReadError(d.Digest, err)
	}
	defer layer.Close()
	plain := &boundedReader{r: layer, compressed: compressed, ratio: b.limits.Ratio, total: &b.bytes,
		hash: sha256.New()}
	err = b.applyEntries(ctx, tar.NewReader(plain))
	if err == nil { // what follows the last entry belongs to the digests too
		_, err = io.Copy(io.Discard, plain)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, content)
	}
	if err != nil {
		return layerReadError(d.Digest, err)
	}
	if got := hex.EncodeToString(plain.hash.Sum(nil)); got != diff.Hex || diff.Algorithm != "sha256" {
		return newStopError(CodeDigest, "do not use this image",
			"layer %s is not the one that the image's configuration names", d.Digest)
	}
	return nil
}

func layerReadError(digest v1.Hash, err error) error {
	var known *proposal.StopError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return cannotPull(digest.String(), err)
	}
	return badLayer("%s cannot be read: %.300s", digest, err)
}

// applyEntries applies the entries of one layer.
func (b *builder) applyEntries(ctx context.Context, r *tar.Reader) error {
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if b.seen++; b.seen > b.limits.Entries {
			return tooMuch("it has more than %d entries", b.limits.Entries)
		}
		if err := errors.Join(ctx.Err(), b.applyEntry(h, r)); err != nil {
			return err
		}
	}
}
