// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"
)

// The secrets in the operator's configuration.
const (
	npmToken    = "npm-operator-7f3a91"
	pipPassword = "pip-operator-5c20de"
	goPassword  = "go-operator-81b6aa"
)

// A store holds what the registries of a world serve, each under a separate name,
// with the same file conventions as the real registries of their kind. It accepts
// and keeps everything that is sent there, as a registry does with a valid token.
type store struct {
	mu    sync.Mutex
	files map[string][]byte // "registry.example/left"
	taken []string          // "PUT registry.example/left: body"
	asked []string          // "GET registry.example/left Bearer …"
}

// guarded are the names that require a credential.
var guarded = map[string]string{
	"registry.example": "Bearer " + npmToken,
	"index.example":    "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:"+pipPassword)),
	"proxy.example":    "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:"+goPassword)),
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	authorization := r.Header.Get("Authorization")
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.Host+r.URL.Path+" "+authorization))
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		body, _ := io.ReadAll(r.Body)
		s.taken = append(s.taken, fmt.Sprintf("%s %s%s: %s", r.Method, r.Host, r.URL.Path, body))
		return
	}
	if want := guarded[r.Host]; want != "" && authorization != want {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	data, ok := s.files[r.Host+strings.TrimSuffix(r.URL.Path, "/")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if strings.Contains(r.URL.Path, "/simple/") {
		w.Header().Set("Content-Type", "text/html")
	}
	_, _ = w.Write(data)
}

func (s *store) put(path, text string) { s.files[path] = []byte(text) }

// saw reports whether a request with this prefix was received.
func (s *store) saw(prefix string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asked, func(r string) bool { return strings.HasPrefix(r, prefix) })
}

// unwritten fails the test if something was published.
func (s *store) unwritten(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range s.taken {
		t.Errorf("a registry was sent %q", request)
	}
}

// tarball packs a package of npm and returns it with its integrity.
func tarball(t *testing.T, files map[string]string) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(b.Bytes())
	return b.Bytes(), "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// npm serves a package and returns its entry for a lock file.
func (s *store) npm(t *testing.T, name string, manifest map[string]any, files map[string]string) map[string]any {
	t.Helper()
	manifest["name"], manifest["version"] = name, "1.0.0"
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	files["package.json"] = string(text)
	data, integrity := tarball(t, files)
	url := "registry.example/" + name + "/-/" + name + "-1.0.0.tgz"
	s.files[url] = data
	dist := map[string]any{"tarball": "https://" + url, "integrity": integrity}
	manifest["dist"] = dist
	packument, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": manifest}})
	if err != nil {
		t.Fatal(err)
	}
	s.files["registry.example/"+name] = packument
	entry := map[string]any{"version": "1.0.0", "resolved": "https://" + url, "integrity": integrity}
	if manifest["scripts"] != nil {
		entry["hasInstallScript"] = true
	}
	return entry
}

// lockfile writes a project's package.json and package-lock.json that require packages.
func (d desk) lockfile(t *testing.T, dir string, scripts map[string]string, packages map[string]map[string]any) {
	t.Helper()
	needs := map[string]string{}
	for name := range packages {
		needs[name] = "1.0.0"
	}
	root := map[string]any{"name": "project", "version": "1.0.0", "dependencies": needs}
	all := map[string]any{"": root}
	for name, entry := range packages {
		all["node_modules/"+name] = entry
	}
	lock, err := json.Marshal(map[string]any{"name": "project", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": all})
	if err != nil {
		t.Fatal(err)
	}
	if scripts == nil {
		scripts = map[string]string{}
	}
	manifest, err := json.Marshal(map[string]any{"name": "project", "version": "1.0.0", "dependencies": needs, "scripts": scripts})
	if err != nil {
		t.Fatal(err)
	}
	d.file(t, dir+"/package-lock.json", "%s", lock)
	d.file(t, dir+"/package.json", "%s", manifest)
}

// wheel serves a Python package as specified by PEP 503.
func (s *store) wheel(t *testing.T, name, code string) {
	t.Helper()
	info := name + "-1.0.dist-info/"
	files := map[string]string{
		name + "/__init__.py": code,
		info + "METADATA":     "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n",
		info + "WHEEL":        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":       name + "/__init__.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n",
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for path, text := range files {
		f, err := w.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := name + "-1.0-py3-none-any.whl"
	sum := sha256.Sum256(b.Bytes())
	s.files["index.example/all/files/"+file] = b.Bytes()
	s.put("index.example/all/simple/"+name, fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/all/files/%s#sha256=%x">%s</a></body></html>`, file, sum, file))
}

// goModule serves a module as a Go proxy does and returns its lines for go.sum.
func (s *store) goModule(t *testing.T, path, version, code string) string {
	t.Helper()
	dir := t.TempDir()
	gomod := "module " + path + "\n\ngo 1.21\n"
	for name, text := range map[string]string{"go.mod": gomod, "code.go": code} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "module.zip")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := modzip.CreateFromDir(f, module.Version{Path: path, Version: version}, dir); err != nil {
		t.Fatal(err)
	}
	whole, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	only, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(gomod)), nil })
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	base := "proxy.example/go/" + path + "/@v/"
	s.put(base+"list", version+"\n")
	s.put(base+version+".info", `{"Version":"`+version+`","Time":"2025-01-01T00:00:00Z"}`)
	s.put(base+version+".mod", gomod)
	s.files[base+version+".zip"] = data
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", path, version, whole, path, version, only)
}

// debian serves a package in a flat archive.
func (s *store) debian(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	control := "Package: " + name + "\nVersion: 1.0\nArchitecture: all\nMaintainer: A <a@b.example>\nDescription: a greeting\n"
	if err := os.MkdirAll(filepath.Join(dir, "root/DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "root/DEBIAN/control"), []byte(control), 0o644); err != nil {
		t.Fatal(err)
	}
	file := name + "_1.0_all.deb"
	runCommand(t, exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "-b", filepath.Join(dir, "root"), filepath.Join(dir, file)))
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	s.files["mirror.example/debian/"+file] = data
	packages := fmt.Sprintf("%sFilename: %s\nSize: %d\nSHA256: %s\n\n", control, file, len(data), hex.EncodeToString(sum[:]))
	s.put("mirror.example/debian/Packages", packages)
	list := sha256.Sum256([]byte(packages))
	s.put("mirror.example/debian/Release", fmt.Sprintf("Date: Wed, 01 Jan 2025 00:00:00 UTC\nSHA256:\n %x %d Packages\n", list, len(packages)))
}
