// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A source has the parts of images by their digests. What it returns is verified by its
// caller.
type source interface {
	open(ctx context.Context, kind string, digest v1.Hash) (io.ReadCloser, error)
}

// Kinds of parts, as in the addresses of a registry.
const (
	manifests = "manifests"
	blobs     = "blobs"
)

// newSource returns the source of r, and r with the digest of the only image in a layout.
func newSource(ctx context.Context, r Reference, keys authn.Keychain) (source, Reference, func(), error) {
	switch r.Kind {
	case Layout:
		root, err := os.OpenRoot(r.Target)
		if err != nil {
			return nil, r, nil, cannotRead("the layout "+r.Target, err)
		}
		r, err = resolveSingle(r, func() (io.ReadCloser, error) { return openRegular(root, "index.json") })
		return layout{root}, r, func() { root.Close() }, err
	case Archive:
		file, err := os.OpenFile(r.Target, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, r, nil, cannotRead("the archive "+r.Target, err)
		}
		a, err := readArchive(file)
		if err == nil {
			r, err = resolveSingle(r, func() (io.ReadCloser, error) { return a.openPart("index.json") })
		}
		return a, r, func() { file.Close() }, err
	}
	s, err := dialRegistry(ctx, r, keys)
	return s, r, func() {}, err
}

// resolveSingle completes r with the digest of the single image that a layout's index names.
func resolveSingle(r Reference, index func() (io.ReadCloser, error)) (Reference, error) {
	if r.Digest != "" {
		return r, nil
	}
	f, err := index()
	if err != nil {
		return r, cannotRead("index.json of "+r.Target, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest))
	var list v1.IndexManifest
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return r, cannotRead("index.json of "+r.Target, err)
	}
	if len(list.Manifests) != 1 {
		return r, newStopError(CodeUnpinned, "add the digest of one of them: @sha256:…", "%q has %d images", r.Target,
			len(list.Manifests))
	}
	r.Digest = list.Manifests[0].Digest.String()
	return r, nil
}

// A layout is a directory. Links in it lead nowhere else.
type layout struct{ root *os.Root }

func (l layout) open(_ context.Context, _ string, digest v1.Hash) (io.ReadCloser, error) {
	return openRegular(l.root, "blobs/"+digest.Algorithm+"/"+digest.Hex)
}

func openRegular(root *os.Root, name string) (io.ReadCloser, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", name))
	}
	return f, nil
}

// An archive is a tar file of a layout: the places of its parts.
type archive struct {
	file  *os.File
	parts map[string][2]int64 // offset and size
}

// maxParts is how many files an archive may have.
const maxParts = 10_000

func readArchive(file *os.File) (archive, error) {
	a := archive{file, map[string][2]int64{}}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return a, cannotRead("the archive "+file.Name(), errors.Join(err, errors.New("not a regular file")))
	}
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if err == io.EOF {
			return a, nil
		}
		if err != nil || len(a.parts) > maxParts {
			return a, cannotRead("the archive "+file.Name(),
				errors.Join(err, errors.New("not a tar file of an OCI image layout")))
		}
		at, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return a, cannotRead("the archive "+file.Name(), err)
		}
		if h.Typeflag == tar.TypeReg && h.PAXRecords["GNU.sparse.major"] == "" {
			a.parts[strings.TrimPrefix(h.Name, "./")] = [2]int64{at, h.Size}
		}
	}
}

func (a archive) openPart(name string) (io.ReadCloser, error) {
	part, found := a.parts[name]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(io.NewSectionReader(a.file, part[0], part[1])), nil
}

func (a archive) open(_ context.Context, _ string, digest v1.Hash) (io.ReadCloser, error) {
	return a.openPart("blobs/" + digest.Algorithm + "/" + digest.Hex)
}

// A registry is one repository, over HTTPS, or HTTP on this machine and in private networks.
type registry struct {
	client *http.Client
	base   url.URL
}

// How long a registry may take to begin to answer, and how many redirects it may use.
const (
	answerTime   = time.Minute
	maxRedirects = 5
)

// dialRegistry authenticates to the registry of r, with the credentials of keys for it. They are sent
// to the registry and to the token server that it names, never to where it redirects.
func dialRegistry(ctx context.Context, r Reference, keys authn.Keychain) (s registry, err error) {
	repo, err := name.NewRepository(r.Target)
	if err != nil {
		return s, cannotPull(r.Target, err)
	}
	auth, err := authn.Resolve(ctx, keys, repo)
	if err != nil {
		return s, cannotPull(r.Target, err)
	}
	plain := http.DefaultTransport.(*http.Transport).Clone()
	plain.ResponseHeaderTimeout, plain.MaxResponseHeaderBytes = answerTime, 1<<20
	plain.DialContext = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
	signed, err := transport.NewWithContext(ctx, repo.Registry, auth, transport.NewRetry(plain),
		[]string{repo.Scope(transport.PullScope)})
	if err != nil {
		return s, cannotPull(r.Target, err)
	}
	client := &http.Client{Transport: signed, CheckRedirect: checkRedirect}
	return registry{client, url.URL{Scheme: repo.Scheme(), Host: repo.RegistryStr(),
		Path: "/v2/" + repo.RepositoryStr() + "/"}}, nil
}

// checkRedirect refuses redirects from HTTPS to HTTP, and to addresses of this machine and of
// its network from elsewhere.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	if from.Scheme == "https" && req.URL.Scheme != "https" {
		return errors.New("redirect from HTTPS to HTTP")
	}
	ip := net.ParseIP(req.URL.Hostname())
	if ip != nil && req.URL.Hostname() != from.Hostname() &&
		(ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()) {
		return errors.New("redirect to an address of a private network")
	}
	return nil
}

var accepted = strings.Join([]string{
	"application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
}, ",")

// sendRequest sends a request about a digest, or about the tag of a manifest.
func (r registry) sendRequest(ctx context.Context, method, kind, reference string) (*http.Response, error) {
	at := r.base
	at.Path += kind + "/" + reference
	req, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	if kind == manifests {
		req.Header.Set("Accept", accepted)
	}
	return r.client.Do(req)
}

// findDigest returns the digest that a tag has now, "" if the registry does not say.
func (r registry) findDigest(ctx context.Context, tag string) string {
	resp, err := r.sendRequest(ctx, http.MethodHead, manifests, tag)
	if err != nil {
		return ""
	}
	resp.Body.Close()
	digest, err := v1.NewHash(resp.Header.Get("Docker-Content-Digest"))
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return digest.String()
}

func (r registry) open(ctx context.Context, kind string, digest v1.Hash) (io.ReadCloser, error) {
	resp, err := r.sendRequest(ctx, http.MethodGet, kind, digest.String())
	if err != nil {
		return nil, cannotPull(r.base.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, cannotPull(r.base.Host, fmt.Errorf("%s of %s: %s", kind, digest, resp.Status))
	}
	return resp.Body, nil
}

// query matches the queries of addresses: those of storage that registries redirect to are
// credentials.
var query = pattern.New(`\?[^\s"]*`)

func cannotPull(what string, err error) error {
	text := query.ReplaceAllString(err.Error(), "?…")
	return newStopError(CodePull, "check the reference, the network, and docker login",
		"cannot pull the image from %s: %.500s", what, text)
}

func cannotRead(what string, err error) error {
	s := newStopError(CodePull, "check the path: oci:DIR is an OCI image layout, oci-archive:FILE a tar file of one, without compression", "cannot read %s", what)
	s.Err = err
	return s
}

// A verifiedReader is the content of a digest. Read returns io.EOF only after exactly size bytes with
// this digest, and never more than size bytes.
type verifiedReader struct {
	r    io.Reader
	hash hash.Hash
	left int64
	want v1.Hash
}

func verifyReader(r io.Reader, digest v1.Hash, size int64) *verifiedReader {
	return &verifiedReader{r: r, hash: sha256.New(), left: size, want: digest}
}

func (v *verifiedReader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p[:min(int64(len(p)), v.left+1)]) // one more, to see that there is no more
	v.left -= int64(n)
	if v.left < 0 {
		return 0, v.digestError("has more bytes than its descriptor says")
	}
	v.hash.Write(p[:n])
	if err != io.EOF {
		return n, err
	}
	if v.left > 0 {
		return n, v.digestError("has fewer bytes than its descriptor says")
	}
	if hex.EncodeToString(v.hash.Sum(nil)) != v.want.Hex {
		return n, v.digestError("is not what was read")
	}
	return n, io.EOF
}

func (v *verifiedReader) digestError(what string) error {
	return newStopError(CodeDigest, "do not use this image; what the registry or layout has was changed", "%s %s",
		v.want, what)
}
