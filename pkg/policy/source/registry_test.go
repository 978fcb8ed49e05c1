// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
)

// A shelf is a registry on loopback with a repository to push to.
type shelf struct {
	t      *testing.T
	server *httptest.Server
	lie    func(http.ResponseWriter, *http.Request) bool // answers in the registry's place
	host   string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t: t}
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.lie == nil || !s.lie(w, r) {
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.server.Close)
	s.host = strings.TrimPrefix(s.server.URL, "http://")
	return s
}

func (s *shelf) push(mediaType string, data []byte) ocispec.Descriptor {
	s.t.Helper()
	repository, err := remote.NewRepository(s.host + "/acme/policy")
	if err != nil {
		s.t.Fatal(err)
	}
	repository.PlainHTTP = true
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	if err := repository.Push(context.Background(), d, bytes.NewReader(data)); err != nil {
		s.t.Fatal(err)
	}
	return d
}

// manifest pushes one of these layers.
func (s *shelf) manifest(layers ...ocispec.Descriptor) string {
	s.t.Helper()
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: s.push(ocispec.MediaTypeImageConfig, []byte("{}")), Layers: layers}
	data, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.spec(s.push(ocispec.MediaTypeImageManifest, data).Digest)
}

func (s *shelf) spec(d digest.Digest) string {
	return fmt.Sprintf("oci://%s/acme/policy@%s", s.host, d)
}

func TestRegistry(t *testing.T) {
	s := newShelf(t)
	data := tarball(t, file(".manifest", `{"revision":"3"}`), file("a.rego", rule))
	layer := s.push(ocispec.MediaTypeImageLayerGzip, data)
	spec := s.manifest(layer)
	l, origin, err := Read(t.Context(), spec, Options{MinimumRevision: "3"})
	if err != nil || len(l.Files) != 1 || origin.Kind != KindOCI || origin.Revision != "3" || !strings.HasSuffix(spec, origin.Digest) {
		t.Fatalf("%+v %v", origin, err)
	}
	index, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, spec, code, said string }{
		{"of another type", s.manifest(s.push("application/vnd.example+gzip", data)), CodeBundle, "one bundle"},
		{"two layers", s.manifest(layer, layer), CodeBundle, "one bundle"},
		{"no layer", s.manifest(), CodeBundle, "one bundle"},
		{"an index", s.spec(s.push(ocispec.MediaTypeImageIndex, index).Digest), CodeBundle, "not a manifest"},
		{"a hostile bundle", s.manifest(s.push(ocispec.MediaTypeImageLayerGzip, tarball(t, file("../a.rego", rule)))), CodeBundle, "not a plain name"},
		{"a layer too large", s.manifest(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: layer.Digest, Size: maxArchive + 1}), codeTooLarge, ""},
		{"a layer of another size", s.manifest(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: layer.Digest, Size: layer.Size - 1}), "", ""},
		{"missing", s.spec(digest.FromString("x")), CodeFetch, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Read(t.Context(), tt.spec, Options{})
			if tt.code == "" && err != nil { // whatever the code, it is refused
				return
			}
			wantCode(t, err, tt.code, tt.said)
		})
	}
}

// TestLyingRegistry: a registry that answers with other bytes than were pinned changes
// nothing.
func TestLyingRegistry(t *testing.T) {
	s := newShelf(t)
	evil := strings.Replace(rule, "deny", "allow", 1)
	good := s.manifest(s.push(ocispec.MediaTypeImageLayerGzip, tarball(t, file("a.rego", rule))))
	bad := s.manifest(s.push(ocispec.MediaTypeImageLayerGzip, tarball(t, file("a.rego", evil))))
	digestOf := func(spec string) string { return spec[strings.Index(spec, "sha256:"):] }
	other := tarball(t, file("a.rego", evil))
	tests := map[string]func(http.ResponseWriter, *http.Request) bool{
		"another manifest": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, digestOf(good)) {
				return false
			}
			http.Redirect(w, r, s.server.URL+"/v2/acme/policy/manifests/"+digestOf(bad), http.StatusTemporaryRedirect)
			return true
		},
		"another manifest under the digest": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			body := []byte(`{"schemaVersion":2,"layers":[]}`)
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", digestOf(good))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Write(body)
			return true
		},
		"another layer": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			w.Write(other)
			return true
		},
		"an endless layer": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			for part := make([]byte, 1<<16); ; {
				if _, err := w.Write(part); err != nil {
					return true
				}
			}
		},
		"an endless manifest": func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Docker-Content-Digest", digestOf(good))
			w.Header().Set("Content-Length", "99999999999")
			return true
		},
		"a token from a place that is not encrypted": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://192.0.2.1/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
	}
	for name, lie := range tests {
		t.Run(name, func(t *testing.T) {
			s.lie = lie
			l, _, err := Read(t.Context(), good, Options{})
			if err == nil || len(l.Files) > 0 || !strings.HasPrefix(code(err), "policy.") {
				t.Errorf("read: %v", err)
			}
		})
	}
}
