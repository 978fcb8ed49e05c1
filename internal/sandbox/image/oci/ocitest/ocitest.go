// SPDX-License-Identifier: Apache-2.0

// Package ocitest makes images for tests, byte by byte, so that they can also be wrong.
package ocitest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Media types.
const (
	TypeIndex    = "application/vnd.oci.image.index.v1+json"
	TypeManifest = "application/vnd.oci.image.manifest.v1+json"
	TypeConfig   = "application/vnd.oci.image.config.v1+json"
	TypeGzip     = "application/vnd.oci.image.layer.v1.tar+gzip"
	TypeZstd     = "application/vnd.oci.image.layer.v1.tar+zstd"
	TypeTar      = "application/vnd.oci.image.layer.v1.tar"
)

// A Descriptor names a part of an image.
type Descriptor struct {
	MediaType string    `json:"mediaType"`
	Digest    string    `json:"digest"`
	Size      int64     `json:"size"`
	Platform  *Platform `json:"platform,omitempty"`
}

// A Platform is that of a manifest in an index.
type Platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// A Manifest is that of an image.
type Manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        Descriptor   `json:"config"`
	Layers        []Descriptor `json:"layers"`
}

// A File is an entry of a layer. With Type 0 it is a regular file, or a directory if its name
// ends with a slash.
type File struct {
	Name string
	Body string
	Type byte
	Mode int64 // 0 means 0755
	Link string
	PAX  map[string]string
}

// Tar returns a layer without compression.
func Tar(t testing.TB, files ...File) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := tar.Header{Name: f.Name, Typeflag: f.Type, Mode: f.Mode, Linkname: f.Link, PAXRecords: f.PAX,
			Size: int64(len(f.Body)),
			Uid:  1234, Gid: 5678, ModTime: time.Unix(1_700_000_000, 0), Format: tar.FormatPAX}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if h.Typeflag == 0 && strings.HasSuffix(f.Name, "/") {
			h.Typeflag = tar.TypeDir
		} else if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		requireNoError(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, f.Body)
		requireNoError(t, err)
	}
	requireNoError(t, w.Close())
	return b.Bytes()
}

// A Layer is one layer as it is in a registry.
type Layer struct {
	Type string
	Data []byte
	Diff string // digest without compression
}

// GzipLayer compresses a tar file.
func GzipLayer(data []byte) Layer {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = w.Write(data)
	_ = w.Close()
	return Layer{TypeGzip, b.Bytes(), Digest(data)}
}

// PlainLayer is a tar file without compression.
func PlainLayer(data []byte) Layer { return Layer{TypeTar, data, Digest(data)} }

// Digest returns "sha256:" and the digest of data.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// An Image is an image with all of its parts.
type Image struct {
	Blobs    map[string][]byte // by digest, with the manifests
	Manifest Manifest
	Digest   string // of the manifest, or of the index after Index
	types    map[string]string
}

// Config is the part of a configuration that tests set.
type Config struct {
	Env        []string `json:",omitempty"`
	User       string   `json:",omitempty"`
	Entrypoint []string `json:",omitempty"`
	WorkingDir string   `json:",omitempty"`
}

// Make makes an image of layers, the lowest first.
func Make(c Config, layers ...Layer) *Image {
	i := &Image{Blobs: map[string][]byte{}, types: map[string]string{},
		Manifest: Manifest{SchemaVersion: 2, MediaType: TypeManifest, Layers: []Descriptor{}}}
	diffs := []string{}
	for _, l := range layers {
		i.Manifest.Layers = append(i.Manifest.Layers, i.addBlob(l.Type, l.Data))
		diffs = append(diffs, l.Diff)
	}
	config := map[string]any{"os": "linux", "architecture": runtime.GOARCH, "config": c,
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs}}
	i.Manifest.Config = i.addBlob(TypeConfig, encodeJSON(config))
	i.UpdateDigest()
	return i
}

// UpdateDigest sets Digest after Manifest was changed.
func (i *Image) UpdateDigest() *Image {
	i.Digest = i.addBlob(TypeManifest, encodeJSON(i.Manifest)).Digest
	return i
}

// WrapInIndex puts the manifest in an index, for this platform, behind one for another.
func (i *Image) WrapInIndex() *Image {
	own := Descriptor{TypeManifest, i.Digest, int64(len(i.Blobs[i.Digest])), &Platform{"linux", runtime.GOARCH}}
	other := i.addBlob(TypeManifest, []byte(`{"schemaVersion":2}`))
	other.Platform = &Platform{"linux", "s390x"}
	i.Digest = i.addBlob(TypeIndex,
		encodeJSON(map[string]any{"schemaVersion": 2, "mediaType": TypeIndex,
			"manifests": []Descriptor{other, own}})).Digest
	return i
}

func (i *Image) addBlob(kind string, data []byte) Descriptor {
	d := Descriptor{MediaType: kind, Digest: Digest(data), Size: int64(len(data))}
	i.Blobs[d.Digest], i.types[d.Digest] = data, kind
	return d
}

func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("ocitest: internal error: " + err.Error())
	}
	return data
}

// WriteLayout writes the image to a new directory and returns it.
func (i *Image) WriteLayout(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	requireNoError(t, os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o755))
	for name, data := range i.layoutFiles() {
		requireNoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	return dir
}

// WriteArchive writes the image to a new tar file and returns its path.
func (i *Image) WriteArchive(t testing.TB) string {
	t.Helper()
	var files []File
	for name, data := range i.layoutFiles() {
		files = append(files, File{Name: name, Body: string(data)})
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	requireNoError(t, os.WriteFile(path, Tar(t, files...), 0o644))
	return path
}

func (i *Image) layoutFiles() map[string][]byte {
	d := Descriptor{i.types[i.Digest], i.Digest, int64(len(i.Blobs[i.Digest])), nil}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
		"index.json": encodeJSON(map[string]any{"schemaVersion": 2, "manifests": []Descriptor{d}})}
	for digest, data := range i.Blobs {
		files["blobs/"+strings.Replace(digest, ":", "/", 1)] = data
	}
	return files
}

// Push pushes the image to a registry at host, and returns its reference with the digest.
func (i *Image) Push(t testing.TB, host, repository string) string {
	t.Helper()
	base := "http://" + host + "/v2/" + repository
	manifests := []string{}
	for digest, data := range i.Blobs {
		if i.types[digest] == TypeManifest || i.types[digest] == TypeIndex {
			manifests = append(manifests, digest)
			continue
		}
		sendBlob(t, http.MethodPost, base+"/blobs/uploads/?digest="+digest, "application/octet-stream", data)
	}
	// an index last
	slices.SortFunc(manifests, func(a, b string) int { return strings.Compare(i.types[b], i.types[a]) })
	for _, digest := range manifests {
		sendBlob(t, http.MethodPut, base+"/manifests/"+digest, i.types[digest], i.Blobs[digest])
	}
	sendBlob(t, http.MethodPut, base+"/manifests/latest", i.types[i.Digest], i.Blobs[i.Digest])
	return fmt.Sprintf("%s/%s@%s", host, repository, i.Digest)
}

func sendBlob(t testing.TB, method, address, kind string, data []byte) {
	t.Helper()
	req, err := http.NewRequest(method, address, bytes.NewReader(data))
	requireNoError(t, err)
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	requireNoError(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s %s: %s", method, address, resp.Status)
	}
}

// ProgramFiles returns these programs of the host, with what their loaders need, as a root with
// merged /usr.
func ProgramFiles(t testing.TB, paths ...string) []File {
	t.Helper()
	files := []File{{Name: "usr/"}, {Name: "usr/bin/"}, {Name: "usr/lib/"}, {Name: "etc/"},
		{Name: "etc/os-release", Body: "ID=test\n"},
		{Name: "bin", Type: tar.TypeSymlink, Link: "usr/bin"}, {Name: "lib", Type: tar.TypeSymlink, Link: "usr/lib"}, {Name: "lib64", Type: tar.TypeSymlink, Link: "/usr/lib64"}}
	seen := map[string]bool{}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		requireNoError(t, err)
		files = append(files, fromHost(t, path, real, seen)...)
		out, err := exec.Command("ldd", real).Output()
		requireNoError(t, err)
		for word := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(word, "/") {
				lib, err := filepath.EvalSymlinks(word)
				requireNoError(t, err)
				at := word
				if strings.HasPrefix(at, "/lib") {
					at = "/usr" + at
				}
				files = append(files, fromHost(t, at, lib, seen)...)
			}
		}
	}
	return files
}

// DirectoryFiles returns the regular files and links below a directory of the host, except for
// caches and tests.
func DirectoryFiles(t testing.TB, dir string) (files []File) {
	t.Helper()
	requireNoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && slices.Contains([]string{"__pycache__", "test", "tests", "dist-packages"},
			e.Name()) {
			return cmp.Or(err, fs.SkipDir)
		}
		f := File{Name: strings.TrimPrefix(path, "/")}
		switch {
		case e.IsDir():
			f.Name += "/"
		case e.Type() == fs.ModeSymlink:
			f.Type = tar.TypeSymlink
			f.Link, err = os.Readlink(path)
		default:
			var data []byte
			data, err = os.ReadFile(path)
			f.Body = string(data)
		}
		files = append(files, f)
		return err
	}))
	return files
}

// debian are mmdebstrap's arguments for Debian.
var debian = []string{"--quiet", "--variant=minbase", "--include=ca-certificates,git", "bookworm"}

// DebianTar returns a tar file with a small Debian that has git. It is made once, in the user's
// cache, and anew when its recipe changes.
func DebianTar(t testing.TB) string {
	t.Helper()
	dir := CacheDir(t, "debian", Digest([]byte(strings.Join(debian, "\n"))))
	path := filepath.Join(dir, "debian.tar")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	work, err := os.MkdirTemp(dir, "making-")
	requireNoError(t, err)
	defer os.RemoveAll(work)
	made := filepath.Join(work, "debian.tar")
	out, err := exec.CommandContext(t.Context(), "mmdebstrap", append(slices.Clone(debian), made)...).CombinedOutput()
	if err != nil {
		t.Fatalf("mmdebstrap: %v\n%s", err, out)
	}
	requireNoError(t, os.Rename(made, path))
	return path
}

// CacheDir returns a directory in the user's cache for what a test makes by the recipe with this
// digest. It removes those of the name's other recipes.
func CacheDir(t testing.TB, name, digest string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	requireNoError(t, err)
	prefix := filepath.Join(cache, "fumehood-test", name+"-")
	dir := prefix + strings.TrimPrefix(digest, "sha256:")[:16]
	old, err := filepath.Glob(prefix + "*")
	requireNoError(t, err)
	for _, other := range old {
		if other != dir {
			requireNoError(t, os.RemoveAll(other))
		}
	}
	requireNoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

func fromHost(t testing.TB, at, real string, seen map[string]bool) []File {
	t.Helper()
	if seen[at] {
		return nil
	}
	seen[at] = true
	data, err := os.ReadFile(real)
	requireNoError(t, err)
	return []File{{Name: strings.TrimPrefix(at, "/"), Body: string(data)}}
}

func requireNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
