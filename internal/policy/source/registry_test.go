// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
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

// push stores a manifest if mediaType is of one, and a blob otherwise.
func (s *shelf) push(mediaType types.MediaType, data []byte) v1.Descriptor {
	s.t.Helper()
	method, path := http.MethodPost, "blobs/uploads/?digest="+Digest(data)
	if mediaType.IsImage() || mediaType.IsIndex() {
		method, path = http.MethodPut, "manifests/"+Digest(data)
	}
	request, err := http.NewRequest(method, s.server.URL+"/v2/acme/policy/"+path, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", string(mediaType))
	response, err := s.server.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		s.t.Fatalf("%s %s: %s", method, path, response.Status)
	}
	return v1.Descriptor{MediaType: mediaType, Digest: hashOf(s.t, Digest(data)), Size: int64(len(data))}
}

func hashOf(t *testing.T, digest string) v1.Hash {
	t.Helper()
	h, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// manifest pushes one of these layers.
func (s *shelf) manifest(layers ...v1.Descriptor) string {
	s.t.Helper()
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: s.push(types.OCIConfigJSON, []byte("{}")), Layers: layers}
	data, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.spec(s.push(types.OCIManifestSchema1, data).Digest)
}

func (s *shelf) spec(d v1.Hash) string {
	return fmt.Sprintf("oci://%s/acme/policy@%s", s.host, d)
}

func TestRegistry(t *testing.T) {
	s := newShelf(t)
	data := tarball(t, file(".manifest", `{"revision":"3"}`), file("a.rego", rule))
	layer := s.push(types.OCILayer, data)
	spec := s.manifest(layer)
	l, origin, err := Read(t.Context(), spec, Options{MinimumRevision: "3"})
	if err != nil || len(l.Files) != 1 || origin.Kind != KindOCI || origin.Revision != "3" || !strings.HasSuffix(spec, origin.Digest) {
		t.Fatalf("%+v %v", origin, err)
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, spec, code, said string }{
		{"of another type", s.manifest(s.push("application/vnd.example+gzip", data)), CodeBundle, "one bundle"},
		{"two layers", s.manifest(layer, layer), CodeBundle, "one bundle"},
		{"no layer", s.manifest(), CodeBundle, "one bundle"},
		{"an index", s.spec(s.push(types.OCIImageIndex, index).Digest), CodeBundle, "not a manifest"},
		{"a hostile bundle", s.manifest(s.push(types.OCILayer, tarball(t, file("../a.rego", rule)))), CodeBundle, "not a plain name"},
		{"a layer too large", s.manifest(v1.Descriptor{MediaType: types.OCILayer, Digest: layer.Digest, Size: maxArchive + 1}), codeTooLarge, ""},
		{"a layer larger than its manifest says", s.manifest(v1.Descriptor{MediaType: types.OCILayer, Digest: layer.Digest, Size: layer.Size - 1}), CodeDigest, "not of the size"},
		{"a layer smaller than its manifest says", s.manifest(v1.Descriptor{MediaType: types.OCILayer, Digest: layer.Digest, Size: layer.Size + 1}), CodeDigest, "not of the size"},
		{"missing", s.spec(hashOf(t, Digest([]byte("x")))), CodeFetch, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Read(t.Context(), tt.spec, Options{})
			wantCode(t, err, tt.code, tt.said)
		})
	}
}

// TestLyingRegistry: a registry that answers with other bytes than were pinned changes
// nothing.
func TestLyingRegistry(t *testing.T) {
	s := newShelf(t)
	evil := strings.Replace(rule, "deny", "allow", 1)
	good := s.manifest(s.push(types.OCILayer, tarball(t, file("a.rego", rule))))
	bad := s.manifest(s.push(types.OCILayer, tarball(t, file("a.rego", evil))))
	digestOf := func(spec string) string { return spec[strings.Index(spec, "sha256:"):] }
	other := tarball(t, file("a.rego", evil))
	codes := map[string]string{"an endless manifest": CodeBundle, "a token from a place that is not encrypted": CodeFetch}
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
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
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
			w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
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
			if err == nil || len(l.Files) > 0 || code(err) != cmp.Or(codes[name], CodeDigest) {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// A registry that gives tokens to everyone is read with one, which goes nowhere else.
func TestRegistryToken(t *testing.T) {
	s := newShelf(t)
	spec := s.manifest(s.push(types.OCILayer, tarball(t, file("a.rego", rule))))
	var elsewhere []string
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		http.Redirect(w, r, s.server.URL+r.URL.Path+"?stored", http.StatusTemporaryRedirect)
	}))
	defer storage.Close()
	s.lie = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/token":
			if r.Header.Get("Authorization") != "" || r.URL.Query().Get("scope") != "repository:acme/policy:pull" {
				t.Errorf("a token is requested with %v %s", r.Header, r.URL)
			}
			fmt.Fprint(w, `{"token":"one"}`)
		case r.URL.RawQuery != "stored" && r.Header.Get("Authorization") != "Bearer one":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, s.server.URL))
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.RawQuery != "stored" && strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, storage.URL+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
	if l, _, err := Read(t.Context(), spec, Options{}); err != nil || len(l.Files) != 1 || len(elsewhere) != 1 || elsewhere[0] != "" {
		t.Errorf("%+v, %q, %v", l, elsewhere, err)
	}
}
