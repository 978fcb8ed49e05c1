// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
)

// servers are two https servers, of which the first lies.
func servers(t *testing.T, data []byte) (first *httptest.Server, o Options) {
	t.Helper()
	mux := http.NewServeMux()
	second := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }))
	first = httptest.NewTLSServer(mux)
	for _, s := range []*httptest.Server{first, second, plain} {
		t.Cleanup(s.Close)
	}
	mux.HandleFunc("/good.tar.gz", func(w http.ResponseWriter, _ *http.Request) { w.Write(data) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, second.URL, http.StatusFound) })
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, _ *http.Request) { w.Write(append(data, 0)) })
	mux.HandleFunc("/squeezed", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(gzipped(t, data))
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(maxArchive+1))
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for part := make([]byte, 1<<16); r.Context().Err() == nil; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	slow := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write([]byte{0})
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}
	mux.HandleFunc("/slow", slow)
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)+10))
		w.Write(data)
	})
	mux.HandleFunc("/private", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	o.Roots = x509.NewCertPool()
	o.Roots.AddCert(first.Certificate())
	o.Roots.AddCert(second.Certificate())
	return first, o
}

func TestFetch(t *testing.T) {
	lanetest.SkipShort(t)
	data := tarball(t, file("a.rego", rule))
	server, o := servers(t, data)
	tests := []struct{ path, code, said string }{
		{"/good.tar.gz", "", ""},
		{"/good.tar.gz?token=secret", "", ""},
		{"/elsewhere", "", ""}, // the digest is what counts, not the host
		{"/plain", CodeFetch, "not encrypted"},
		{"/file", CodeFetch, "not encrypted"},
		{"/round", CodeFetch, "redirects"},
		{"/other", CodeDigest, "has the digest"},
		{"/squeezed", CodeDigest, "has the digest"},
		{"/large", codeTooLarge, ""},
		{"/endless", codeTooLarge, ""},
		{"/slow", CodeFetch, "not received within 1s"},
		{"/silent", CodeFetch, "not received within 1s"},
		{"/short", CodeFetch, "unexpected EOF"},
		{"/private?token=secret", CodeFetch, "status 401"},
		{"/missing", CodeFetch, "status 404"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			o := o
			if tt.path == "/slow" || tt.path == "/silent" {
				o.Timeout = time.Second
			}
			l, origin, err := Read(t.Context(), server.URL+tt.path+"@"+Digest(data), o)
			wantCode(t, err, tt.code, tt.said)
			switch {
			case err != nil && (len(l.Files) > 0 || origin.Digest != "" || strings.Contains(err.Error(), "secret")):
				t.Errorf("%+v %v", origin, err)
			case err == nil && (origin.Kind != KindHTTPS || origin.Digest != Digest(data) || len(l.Files) != 1 || strings.Contains(origin.Spec, "secret")):
				t.Errorf("%+v", origin)
			}
		})
	}
	t.Run("an unknown certificate", func(t *testing.T) {
		_, _, err := Read(t.Context(), server.URL+"/good.tar.gz@"+Digest(data), Options{Roots: x509.NewCertPool()})
		wantCode(t, err, CodeFetch, "certificate")
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := Read(ctx, server.URL+"/good.tar.gz@"+Digest(data), o)
		wantCode(t, err, CodeFetch, "canceled")
	})
}

func TestReadFile(t *testing.T) {
	data := tarball(t, file(".manifest", `{"revision":"2"}`), file("a.rego", rule))
	good := write(t, "p.tar.gz", string(data))
	l, origin, err := Read(t.Context(), good+"@"+Digest(data), Options{})
	if err != nil || origin != (Origin{Kind: KindBundle, Spec: "p.tar.gz", Digest: Digest(data), Revision: "2"}) || len(l.Files) != 1 || l.Role != policy.Restricts {
		t.Errorf("%+v %v", origin, err)
	}
	for spec, want := range map[string]string{
		good + pin: CodeDigest, t.TempDir() + "/x.tar.gz": codeMissing, "/dev/null.tar.gz": codeMissing,
		write(t, "large.tgz", strings.Repeat("x", maxArchive+1)): codeTooLarge,
	} {
		_, _, err := Read(t.Context(), spec, Options{})
		wantCode(t, err, want, "")
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	_, _, err := Read(t.Context(), dir, Options{})
	wantCode(t, err, codeMissing, "no .rego")
	_, _, err = Read(t.Context(), "git:main:policy", Options{})
	wantCode(t, err, CodeSource, "no repository")
	_, _, err = Read(t.Context(), "base:policy", Options{Repository: func(context.Context) (Repository, error) { return nil, nil }})
	wantCode(t, err, CodeSource, "no pull request")
}
