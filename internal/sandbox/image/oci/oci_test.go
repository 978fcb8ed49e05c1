// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	fakeregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/klauspost/compress/zstd"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/sandbox/image/oci/ocitest"
	"github.com/fumehood/fumehood/internal/sandbox/image/tree"
	"github.com/fumehood/fumehood/pkg/proposal"
)

type file = ocitest.File

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func options(t testing.TB) Options {
	return Options{Dir: filepath.Join(t.TempDir(), "images"), Keys: authn.NewMultiKeychain()}
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code {
		t.Errorf("%v; want %s", err, code)
	}
}

// layers makes an image of tar files, the lowest first.
func layers(t testing.TB, list ...[]file) *ocitest.Image {
	t.Helper()
	var all []ocitest.Layer
	for _, files := range list {
		all = append(all, ocitest.GzipLayer(ocitest.Tar(t, files...)))
	}
	return ocitest.Make(ocitest.Config{}, all...)
}

// read returns what an image has: by path, "/" after a directory, "-> " and the target of a
// link, or content; and its mode if that is unusual.
func read(t testing.TB, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	files, err := tree.Open(f)
	must(t, err)
	defer files.Close()
	found := map[string]string{}
	must(t, fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := e.Info()
		must(t, err)
		switch {
		case e.IsDir():
			found[path+"/"] = ""
		case e.Type() == fs.ModeSymlink:
			target, err := files.ReadLink(path)
			must(t, err)
			found[path] = "-> " + target
		default:
			data, err := files.ReadFile(path)
			must(t, err)
			found[path] = string(data)
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeIrregular) != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
	return found
}

func d(name string) file               { return file{Name: name + "/"} }
func f(name, body string) file         { return file{Name: name, Body: body} }
func link(name, target string) file    { return file{Name: name, Type: tar.TypeSymlink, Link: target} }
func hard(name, target string) file    { return file{Name: name, Type: tar.TypeLink, Link: target} }
func special(name string, b byte) file { return file{Name: name, Type: b} }

// Layers are applied as the image specification says. Names and links lead nowhere else than
// into the image.
func TestLayers(t *testing.T) {
	long := strings.Repeat("x", 255)
	tests := map[string]struct {
		layers [][]file
		want   string // "path=content" of all files, or "code"
	}{
		"plain":                        {[][]file{{d("a"), f("a/b", "1"), link("c", "a/b")}}, "a/ a/b=1 c=-> a/b"},
		"no directory entry":           {[][]file{{f("a/b/c", "1")}}, "a/ a/b/ a/b/c=1"},
		"absolute and dotted names":    {[][]file{{f("/a", "1"), f("./b", "2"), f("c//d", "3")}}, "a=1 b=2 c/ c/d=3"},
		"upper replaces":               {[][]file{{f("a", "1")}, {f("a", "2")}}, "a=2"},
		"whiteout":                     {[][]file{{f("a/b", "1"), f("a/c", "2")}, {f("a/.wh.b", "")}}, "a/ a/c=2"},
		"whiteout of a directory":      {[][]file{{f("a/b/c", "1")}, {f(".wh.a", "")}}, ""},
		"whiteout is for lower layers": {[][]file{{f("a", "1")}, {f("a", "2"), f(".wh.a", "")}}, "a=2"},
		"whiteout first":               {[][]file{{f("a/x", "1")}, {f(".wh.a", ""), f("a/y", "2")}}, "a/ a/y=2"},
		"whiteout of everything":       {[][]file{{f("a", "1"), f("b/c", "2")}, {f(".wh.a", ""), f(".wh.b", "")}}, ""},
		"whiteout of nothing":          {[][]file{{f("x/y/.wh.a", ""), f("b", "1")}}, "b=1"},
		"opaque":                       {[][]file{{f("a/b", "1"), f("a/c/d", "2")}, {d("a"), f("a/e", "3"), f("a/.wh..wh..opq", "")}}, "a/ a/e=3"},
		"opaque first":                 {[][]file{{f("a/b", "1")}, {d("a"), f("a/.wh..wh..opq", ""), f("a/e", "3")}}, "a/ a/e=3"},
		"opaque root":                  {[][]file{{f("a/b", "1")}, {f(".wh..wh..opq", ""), f("z", "1")}}, "z=1"},
		"opaque where a file is":       {[][]file{{f("a", "1")}, {f("a/.wh..wh..opq", "")}}, "a=1"},
		"metadata of AUFS":             {[][]file{{f(".wh..wh.aufs", ""), f(".wh..wh.plnk/1", "x"), f("a", "1")}}, "a=1"},
		"whiteout of dots":             {[][]file{{f("a/.wh...", "")}}, CodeLayer},
		"whiteout without name":        {[][]file{{d("a"), f("a/.wh.", "")}}, CodeLayer},
		"below a whiteout":             {[][]file{{f(".wh.a/b", "")}}, CodeLayer},
		"whiteout through a link":      {[][]file{{f("x/b", "1"), link("a", "/x")}, {f("a/.wh.b", "")}}, "a=-> /x x/"},
		"file over a directory":        {[][]file{{f("a/b", "1")}, {f("a", "2")}}, "a=2"},
		"directory over a file":        {[][]file{{f("a", "1")}, {d("a"), f("a/b", "2")}}, "a/ a/b=2"},
		"below a lower file":           {[][]file{{f("a", "1")}, {f("a/b", "2")}}, "a/ a/b=2"},
		"below a file":                 {[][]file{{f("a", "1"), f("a/b", "2")}}, CodeLayer},
		"link over a directory":        {[][]file{{f("a/b", "1")}, {link("a", "c")}}, "a=-> c"},
		"twice":                        {[][]file{{f("a", "1"), f("a", "2")}}, "a=2"},
		"letter case":                  {[][]file{{f("a", "1"), f("A", "2")}}, "A=2 a=1"},
		"up":                           {[][]file{{f("../a", "1")}}, CodeLayer},
		"up inside":                    {[][]file{{f("a/../../b", "1")}}, CodeLayer},
		"up at the end":                {[][]file{{d("a/..")}}, CodeLayer},
		"a long name":                  {[][]file{{f(long, "1")}}, long + "=1"},
		"a name that is too long":      {[][]file{{f(long+"x", "1")}}, CodeLayer},
		"a path that is too long":      {[][]file{{f(strings.Repeat("a/", 2050)+"b", "1")}}, CodeLayer},
		"root is a file":               {[][]file{{f("./", "")}}, ""},
		"through an absolute link":     {[][]file{{link("etc2", "/etc"), f("etc2/passwd", "evil")}}, "etc/ etc/passwd=evil etc2=-> /etc"},
		"through a link upwards":       {[][]file{{link("a", "../../../../etc"), f("a/shadow", "evil")}}, "a=-> ../../../../etc etc/ etc/shadow=evil"},
		"through links in a circle":    {[][]file{{link("a", "b"), link("b", "a"), f("a/x", "1")}}, CodeLayer},
		"through a link of before":     {[][]file{{d("usr/bin"), link("bin", "usr/bin")}, {f("bin/x", "1")}}, "bin=-> usr/bin usr/ usr/bin/ usr/bin/x=1"},
		"link without target":          {[][]file{{link("a", "")}}, CodeLayer},
		"a strange target":             {[][]file{{link("a", "/proc/self/root/../x\n")}}, "a=-> /proc/self/root/../x\n"},
		"hard link":                    {[][]file{{f("a", "1"), hard("b", "a")}}, "a=1 b=1"},
		"hard link to a lower layer":   {[][]file{{f("a", "1")}, {hard("b", "a"), f(".wh.a", "")}}, "b=1"},
		"hard link, target replaced":   {[][]file{{f("a", "1"), hard("b", "a")}, {f("a", "2")}}, "a=2 b=1"},
		"hard link to a link":          {[][]file{{link("a", "x"), hard("b", "a")}}, "a=-> x b=-> x"},
		"hard link out":                {[][]file{{hard("a", "../../etc/passwd")}}, CodeLayer},
		"hard link to the host":        {[][]file{{hard("a", "/etc/passwd")}}, CodeLayer},
		"hard link through a link":     {[][]file{{link("a", "/"), hard("b", "a/etc/passwd")}}, CodeLayer},
		"hard link to later":           {[][]file{{hard("b", "a"), f("a", "1")}}, CodeLayer},
		"hard link to itself":          {[][]file{{hard("a", "a")}}, CodeLayer},
		"hard link to a directory":     {[][]file{{d("a"), hard("b", "a")}}, CodeLayer},
		"hard link to what is omitted": {[][]file{{f("var/a", "1"), hard("b", "var/a")}}, "b=1"},
		"devices":                      {[][]file{{special("a", tar.TypeChar), special("b", tar.TypeBlock), special("c", tar.TypeFifo), f("d", "1")}}, "d=1"},
		"device over a file":           {[][]file{{f("a", "1")}, {special("a", tar.TypeChar)}}, ""},
		"hard link to a device":        {[][]file{{special("a", tar.TypeChar), hard("b", "a")}}, ""},
		"setuid":                       {[][]file{{{Name: "a", Body: "1", Mode: 0o6755}}}, "a=1"},
		"attributes":                   {[][]file{{{Name: "a", Body: "1", PAX: map[string]string{"SCHILY.xattr.security.capability": "x"}}}}, "a=1"},
		"an unknown type":              {[][]file{{special("a", 'Z')}}, CodeLayer},
		"omitted places":               {[][]file{{f("proc/x", "1"), f("dev/x", "1"), f("tmp/x", "1"), f("home/x", "1"), f("root/x", "1"), f("workspace/x", "1"), f(".fumehood/x", "1"), f("run/x", "1"), f("usr/x", "1")}}, "usr/ usr/x=1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			i, err := Open(t.Context(), Layout+layers(t, test.layers...).WriteLayout(t), o)
			if strings.HasPrefix(test.want, "rootfs.") {
				wantCode(t, err, test.want)
				wantEmpty(t, o.Dir)
				return
			}
			must(t, err)
			defer i.Close()
			found := read(t, i.Path)
			var parts []string
			for _, path := range slices.Sorted(maps.Keys(found)) {
				part := path
				if !strings.HasSuffix(path, "/") {
					part += "=" + found[path]
				}
				parts = append(parts, part)
			}
			if got := strings.Join(parts, " "); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// wantEmpty checks that a store has only its lock.
func wantEmpty(t testing.TB, dir string) {
	t.Helper()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "lock" {
			t.Errorf("%s is left in the store", e.Name())
		}
	}
}

func TestDropped(t *testing.T) {
	i, err := Open(t.Context(), Layout+layers(t, []file{special("a", tar.TypeChar), special("b", tar.TypeFifo), {Name: "c", Mode: 0o4755},
		{Name: "d", PAX: map[string]string{"SCHILY.xattr.user.x": "y"}}}).WriteLayout(t), options(t))
	must(t, err)
	defer i.Close()
	if want := (Dropped{Devices: 2, Setuid: 1, Xattrs: 1}); i.Dropped != want {
		t.Errorf("%+v, want %+v", i.Dropped, want)
	}
}

// What a whiteout hides is not in the image file.
func TestWhiteoutLeavesNothing(t *testing.T) {
	secret := "a secret that a lower layer had"
	i, err := Open(t.Context(), Layout+layers(t, []file{f("usr/key", secret)}, []file{f("usr/.wh.key", "")}).WriteLayout(t), options(t))
	must(t, err)
	defer i.Close()
	data, err := os.ReadFile(i.Path)
	must(t, err)
	if bytes.Contains(data, []byte(secret)) {
		t.Error("the image file has it")
	}
}

// The image file depends on the result alone, not on how it is divided into layers.
func TestReproducible(t *testing.T) {
	open := func(list ...[]file) string {
		i, err := Open(t.Context(), Layout+layers(t, list...).WriteLayout(t), options(t))
		must(t, err)
		defer i.Close()
		return i.File
	}
	if a, b := open([]file{d("x"), f("x/a", "1"), f("b", "2")}), open([]file{f("b", "0"), f("c", "")}, []file{f("b", "2"), d("x"), f(".wh.c", "")}, []file{f("x/a", "1")}); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

func zstdLayer(t testing.TB, data []byte, o ...zstd.EOption) ocitest.Layer {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, o...)
	must(t, err)
	_, err = w.Write(data)
	must(t, errors.Join(err, w.Close()))
	return ocitest.Layer{Type: ocitest.TypeZstd, Data: b.Bytes(), Diff: ocitest.Digest(data)}
}

func TestCompression(t *testing.T) {
	lanetest.SkipShort(t)
	for name, layer := range map[string]ocitest.Layer{
		"gzip": ocitest.GzipLayer(ocitest.Tar(t, f("a", "1"))), "zstd": zstdLayer(t, ocitest.Tar(t, f("a", "1"))), "none": ocitest.PlainLayer(ocitest.Tar(t, f("a", "1"))),
	} {
		image, indexed := ocitest.Make(ocitest.Config{}, layer), ocitest.Make(ocitest.Config{}, layer).WrapInIndex()
		for _, value := range []string{Layout + image.WriteLayout(t), Layout + image.WriteLayout(t) + "@" + image.Digest, Archive + image.WriteArchive(t), Archive + indexed.WriteArchive(t)} {
			i, err := Open(t.Context(), value, options(t))
			must(t, err)
			if found := read(t, i.Path); found["a"] != "1" || i.Platform != Platform() {
				t.Errorf("%s: %v", name, found)
			}
			must(t, i.Close())
		}
	}
}

// zeros is a tar file with one file of n zeros.
func zeros(t testing.TB, n int64, into io.Writer) {
	t.Helper()
	w := tar.NewWriter(into)
	must(t, w.WriteHeader(&tar.Header{Name: "zeros", Size: n, Mode: 0o644}))
	_, err := io.CopyN(w, zeroReader{}, n)
	must(t, errors.Join(err, w.Close()))
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sparse is the header of a file of the old GNU format with one hole of n bytes.
func sparse(n int64) []byte {
	h := make([]byte, 512)
	copy(h, "hole")
	copy(h[100:], "0000644\x00")
	copy(h[124:], "00000000000\x00")
	copy(h[136:], "00000000000\x00")
	h[156] = 'S'
	copy(h[257:], "ustar  \x00")
	copy(h[386:], fmt.Sprintf("%011o\x00%011o\x00", n, 0))
	copy(h[483:], fmt.Sprintf("%011o\x00", n))
	copy(h[148:], "        ")
	sum := 0
	for _, b := range h {
		sum += int(b)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return append(h, make([]byte, 1024)...)
}

// What an image asks for is bounded.
func TestBounds(t *testing.T) {
	lanetest.SkipShort(t)
	small := Limits{Bytes: 200 << 20, File: 100 << 20, Entries: 1000, Files: 500, Layers: 10}
	many := func(n int) (list []file) {
		for i := range n {
			list = append(list, f(fmt.Sprint("f", i), ""))
		}
		return list
	}
	bomb := func(write func(io.Writer)) []byte {
		var b bytes.Buffer
		write(&b)
		return b.Bytes()
	}
	big := bomb(func(w io.Writer) { zeros(t, 90<<20, w) })
	tests := map[string]struct {
		image *ocitest.Image
		code  string
	}{
		"sparse":             {ocitest.Make(ocitest.Config{}, ocitest.GzipLayer(sparse(8<<30-1))), CodeLimit},
		"gzip bomb":          {ocitest.Make(ocitest.Config{}, ocitest.GzipLayer(big)), CodeLimit},
		"zstd bomb":          {ocitest.Make(ocitest.Config{}, zstdLayer(t, big)), CodeLimit},
		"zstd window":        {ocitest.Make(ocitest.Config{}, zstdLayer(t, big, zstd.WithWindowSize(128<<20), zstd.WithSingleSegment(false))), CodeLayer},
		"too many bytes":     {ocitest.Make(ocitest.Config{}, ocitest.PlainLayer(big), ocitest.PlainLayer(big), ocitest.PlainLayer(big)), CodeLimit},
		"too many files":     {layers(t, many(501)), CodeLimit},
		"too many entries":   {layers(t, slices.Repeat([]file{f("a", "")}, 1001)), CodeLimit},
		"too many layers":    {layers(t, slices.Repeat([][]file{{f("a", "")}}, 11)...), CodeLimit},
		"a hundred thousand": {hundredThousand(), CodeLimit},
		"large headers":      {ocitest.Make(ocitest.Config{}, ocitest.PlainLayer(largeHeader(t))), CodeLayer},
		"truncated":          {ocitest.Make(ocitest.Config{}, ocitest.PlainLayer(ocitest.Tar(t, f("a", strings.Repeat("x", 2000)))[:1000])), CodeLayer},
		"not a tar file":     {ocitest.Make(ocitest.Config{}, ocitest.PlainLayer([]byte(strings.Repeat("x", 2000)))), CodeLayer},
		"not gzip":           {ocitest.Make(ocitest.Config{}, ocitest.Layer{Type: ocitest.TypeGzip, Data: []byte("xxxxxxxxxxxxxxxxxxxx"), Diff: ocitest.Digest(nil)}), CodeLayer},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			o.Limits = small
			_, err := Open(t.Context(), Layout+test.image.WriteLayout(t), o)
			wantCode(t, err, test.code)
			wantEmpty(t, o.Dir)
		})
	}
}

// largeHeader is a tar file whose first entry has 2 MiB of PAX records.
func largeHeader(t testing.TB) []byte {
	data := ocitest.Tar(t, file{Name: "x", Body: strings.Repeat("y", 2<<20)})
	data[156] = 'x'
	sum := 0
	copy(data[148:156], "        ")
	for _, b := range data[:512] {
		sum += int(b)
	}
	copy(data[148:], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

func hundredThousand() *ocitest.Image {
	i := ocitest.Make(ocitest.Config{}, ocitest.PlainLayer(nil))
	i.Manifest.Layers = slices.Repeat(i.Manifest.Layers, 100_000)
	return i.UpdateDigest()
}

// Content that is not what its digest or size says is refused.
func TestDigests(t *testing.T) {
	lanetest.SkipShort(t)
	tests := map[string]struct {
		change func(*ocitest.Image)
		code   string
	}{
		"a layer's byte": {func(i *ocitest.Image) { i.Blobs[i.Manifest.Layers[0].Digest][15] ^= 1 }, ""},
		"a layer swapped": {func(i *ocitest.Image) {
			i.Blobs[i.Manifest.Layers[0].Digest] = ocitest.GzipLayer(ocitest.Tar(t, f("a", "evil"))).Data
		}, CodeDigest},
		"a layer's end missing": {func(i *ocitest.Image) {
			at := i.Manifest.Layers[0].Digest
			i.Blobs[at] = i.Blobs[at][:len(i.Blobs[at])-4]
		}, ""},
		"more after a layer": {func(i *ocitest.Image) { at := i.Manifest.Layers[0].Digest; i.Blobs[at] = append(i.Blobs[at], 0) }, ""},
		"a size":             {func(i *ocitest.Image) { i.Manifest.Layers[0].Size--; i.UpdateDigest() }, ""},
		"a negative size":    {func(i *ocitest.Image) { i.Manifest.Layers[0].Size = -1; i.UpdateDigest() }, CodeFormat},
		"a larger size":      {func(i *ocitest.Image) { i.Manifest.Layers[0].Size++; i.UpdateDigest() }, CodeDigest},
		"the manifest":       {func(i *ocitest.Image) { i.Blobs[i.Digest] = append(i.Blobs[i.Digest], ' ') }, CodeDigest},
		"the configuration":  {func(i *ocitest.Image) { at := i.Manifest.Config.Digest; i.Blobs[at] = append(i.Blobs[at], ' ') }, CodeDigest},
		"a missing layer":    {func(i *ocitest.Image) { delete(i.Blobs, i.Manifest.Layers[0].Digest) }, CodePull},
		"another tar file": {func(i *ocitest.Image) {
			*i = *ocitest.Make(ocitest.Config{}, ocitest.Layer{Type: ocitest.TypeTar, Data: ocitest.Tar(t, f("a", "1")), Diff: ocitest.Digest(nil)})
		}, CodeDigest},
		"schema 1": {func(i *ocitest.Image) { i.Manifest.SchemaVersion = 1; i.UpdateDigest() }, CodeFormat},
		"a foreign layer": {func(i *ocitest.Image) {
			i.Manifest.Layers[0].MediaType = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
			i.UpdateDigest()
		}, CodeFormat},
		"nondistributable": {func(i *ocitest.Image) {
			i.Manifest.Layers[0].MediaType = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
			i.UpdateDigest()
		}, CodeFormat},
		"encrypted": {func(i *ocitest.Image) { i.Manifest.Layers[0].MediaType += "+encrypted"; i.UpdateDigest() }, CodeFormat},
		"another algorithm": {func(i *ocitest.Image) {
			i.Manifest.Layers[0].Digest = "sha512:" + strings.Repeat("0", 128)
			i.UpdateDigest()
		}, CodeFormat},
		"layers without ids": {func(i *ocitest.Image) {
			i.Manifest.Layers = append(i.Manifest.Layers, i.Manifest.Layers[0])
			i.UpdateDigest()
		}, CodeDigest},
		"a huge manifest":      {func(i *ocitest.Image) { i.Manifest.MediaType += strings.Repeat("x", maxManifest); i.UpdateDigest() }, CodeLimit},
		"a huge configuration": {func(i *ocitest.Image) { i.Manifest.Config.Size = maxManifest + 1; i.UpdateDigest() }, CodeLimit},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			image := layers(t, []file{f("a", "1")})
			before := image.Digest
			test.change(image)
			value := Layout + image.WriteLayout(t)
			if name == "the manifest" {
				value += "@" + before
			}
			o := options(t)
			_, err := Open(t.Context(), value, o)
			var stop *proposal.StopError
			if test.code == "" { // whichever notices first
				if !errors.As(err, &stop) || stop.Code != CodeDigest && stop.Code != CodeLayer {
					t.Errorf("%v; want a refusal", err)
				}
			} else {
				wantCode(t, err, test.code)
			}
			wantEmpty(t, o.Dir)
		})
	}
}

// A registry that answers differently the second time is noticed, and credentials are sent
// to it alone.
func TestRegistry(t *testing.T) {
	image := layers(t, []file{f("a", "1")}).WrapInIndex()
	inner := fakeregistry.New(fakeregistry.Logger(log.New(io.Discard, "", 0)))
	lie := func(http.ResponseWriter, *http.Request) bool { return false }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !lie(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	ref := Registry + image.Push(t, host, "acme/x")
	var stolen []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
		_, _ = w.Write(image.Blobs[filepath.Base(r.URL.Path)])
	}))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	redirect := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		http.Redirect(w, r, elsewhere+"/"+filepath.Base(r.URL.Path)+"?X-Signature=geheim", http.StatusTemporaryRedirect)
		return true
	}
	manifests := 0
	for name, test := range map[string]struct {
		lie  func(w http.ResponseWriter, r *http.Request) bool
		code string
	}{
		"honest":   {func(http.ResponseWriter, *http.Request) bool { return false }, ""},
		"redirect": {redirect, ""},
		"manifest changes": {func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			if manifests++; manifests == 1 {
				return false
			}
			_, _ = w.Write([]byte(`{"schemaVersion":2,"layers":[]}`))
			return true
		}, CodeDigest},
		"endless manifest": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/manifests/") {
				_, _ = io.CopyN(w, zeroReader{}, maxManifest+2)
				return true
			}
			return false
		}, CodeLimit},
		"endless blob": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, image.Manifest.Layers[0].Digest) {
				_, _ = w.Write(image.Blobs[image.Manifest.Layers[0].Digest])
				_, _ = io.CopyN(w, zeroReader{}, 1<<30)
				return true
			}
			return false
		}, CodeDigest},
		"not found": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.NotFound(w, r)
				return true
			}
			return false
		}, CodePull},
	} {
		t.Run(name, func(t *testing.T) {
			lie, manifests = test.lie, 0
			o := options(t)
			o.Keys = keys{host}
			i, err := Open(t.Context(), ref, o)
			if test.code != "" {
				wantCode(t, err, test.code)
				wantEmpty(t, o.Dir)
				return
			}
			must(t, err)
			defer i.Close()
			if i.Reference.Digest != image.Digest || read(t, i.Path)["a"] != "1" || !strings.HasSuffix(i.String(), i.Manifest) {
				t.Errorf("%+v", i)
			}
		})
	}
	if len(stolen) == 0 || strings.Join(stolen, "") != "" {
		t.Errorf("the other host got %q; want requests without credentials", stolen)
	}
}

// keys are credentials for one host.
type keys struct{ host string }

func (k keys) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if r.RegistryStr() == k.host {
		return &authn.Basic{Username: "user", Password: "password-of-the-registry"}, nil
	}
	return authn.Anonymous, nil
}

// A reference to a tag is refused with the digest that it has now, if the registry says it to these
// credentials.
func TestTagHint(t *testing.T) {
	image := layers(t, []file{f("a", "1")})
	inner := fakeregistry.New(fakeregistry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); r.Method != http.MethodPut && r.Method != http.MethodPost && password == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	request, err := http.NewRequest(http.MethodPut, server.URL+"/v2/acme/x/manifests/12", bytes.NewReader(image.Blobs[image.Digest]))
	must(t, err)
	request.Header.Set("Content-Type", ocitest.TypeManifest)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		t.Fatal(response.Status)
	}
	for tag, want := range map[string]string{"12": "its digest is now " + image.Digest + ":", "13": "add the image's digest"} {
		o := options(t)
		o.Keys = keys{host}
		_, err = Open(t.Context(), Registry+host+"/acme/x:"+tag, o)
		wantCode(t, err, CodeUnpinned)
		if f := proposal.FailureOf(err); f == nil || !strings.Contains(f.Hint, want) {
			t.Errorf("%s: %+v", tag, f)
		}
	}
}

// An address that storage signed, and credentials, are in no error.
func TestErrorsHaveNoCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path != "/v2/" {
			http.Redirect(w, r, "http://127.0.0.1:1/x?X-Signature=geheim", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	o := options(t)
	o.Keys = keys{host}
	_, err := Open(t.Context(), Registry+host+"/x/y@sha256:"+strings.Repeat("0", 64), o)
	wantCode(t, err, CodePull)
	var stop *proposal.StopError
	errors.As(err, &stop)
	if text := fmt.Sprintf("%v %+v %v", err, stop, stop.Err); strings.Contains(text, "geheim") || strings.Contains(text, "password") || strings.Contains(text, "dXNlcjp") {
		t.Error(text)
	}
}

func TestPlatform(t *testing.T) {
	image := layers(t, []file{f("a", "1")})
	index := image.WrapInIndex()
	index.Blobs[index.Digest] = bytes.ReplaceAll(index.Blobs[index.Digest], []byte(`"linux"`), []byte(`"plan9"`))
	dir := index.WriteLayout(t)
	data := index.Blobs[index.Digest]
	digest := ocitest.Digest(data)
	must(t, os.WriteFile(filepath.Join(dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:")), data, 0o644))
	_, err := Open(t.Context(), Layout+dir+"@"+digest, options(t))
	wantCode(t, err, CodePlatform)
}

func TestParse(t *testing.T) {
	zero := "@sha256:" + strings.Repeat("0", 64)
	for value, code := range map[string]string{
		"image:debian" + zero: "", "image:ghcr.io/a/b:1" + zero: "", "oci:/x": "", "oci:/x" + zero: "", "oci-archive:/x.tar": "",
		"image:debian": CodeUnpinned, "image:debian:12": CodeUnpinned, "image:": CodeReference, "image:A" + zero: CodeReference, "image:x@sha256:12": CodeReference,
		"image:x@sha512:" + strings.Repeat("0", 128): CodeReference, "oci:x": CodeReference, "oci:/x@sha256:1": CodeReference, "docker:x": CodeReference, "": CodeReference, "image:https://x/y" + zero: CodeReference,
	} {
		_, err := Parse(value)
		if code == "" {
			must(t, err)
		} else {
			wantCode(t, err, code)
		}
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := options(t)
	_, err := Open(ctx, Layout+layers(t, []file{f("a", "1")}).WriteLayout(t), o)
	wantCode(t, err, CodePull)
	wantEmpty(t, o.Dir)
}
