// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const rule = `package fumehood.command

deny contains {"rule": "acme.curl", "message": "no"} if input.command.program == "curl"
`

// code is the code of an error, or what else it is.
func code(err error) string {
	var stopped *proposal.StopError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &stopped):
		return stopped.Code
	}
	return "no code: " + err.Error()
}

func wantCode(t *testing.T, err error, want, said string) {
	t.Helper()
	if got := code(err); got != want || err != nil && !strings.Contains(err.Error(), said) {
		t.Errorf("code %q, want %q saying %q: %v", got, want, said, err)
	}
	var stopped *proposal.StopError
	if errors.As(err, &stopped) && stopped.Hint == "" {
		t.Errorf("no hint: %v", err)
	}
}

// A member is one entry of an archive, as hostile as it likes.
type member struct {
	header  tar.Header
	content string
}

func file(name, content string) member {
	return member{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, content}
}

func special(kind byte, name, to string) member {
	return member{tar.Header{Typeflag: kind, Name: name, Linkname: to, Mode: 0o644}, ""}
}

// tarball writes members and compresses them.
func tarball(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, m := range members {
		if m.header.Typeflag == tar.TypeReg {
			m.header.Size = int64(len(m.content))
		}
		if err := archive.WriteHeader(&m.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func raw(t testing.TB, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// sparseTarball has a file that is a hole of a gigabyte, as GNU tar writes it.
func sparseTarball(t *testing.T, format string) []byte {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.rego")
	if err := errors.Join(os.WriteFile(path, []byte(rule), 0o600), os.Truncate(path, 1<<30)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tar", "-C", dir, "-czf", "-", "--sparse", "--format="+format, "a.rego").Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHostileBundles(t *testing.T) {
	lanetest.SkipShort(t)
	good := file("a.rego", rule)
	fine := tarball(t, good)
	many := make([]member, 0, maxEntries+1)
	for i := range maxEntries + 1 {
		many = append(many, file(fmt.Sprintf("%d.txt", i), ""))
	}
	flipped := bytes.Clone(fine)
	flipped[len(flipped)-6] ^= 1 // the checksum
	tests := []struct {
		name       string
		data       []byte
		code, said string
	}{
		{"empty", nil, CodeBundle, "EOF"},
		{"no gzip", []byte(rule), CodeBundle, "gzip"},
		{"no tar", gzipped(t, []byte(strings.Repeat(rule, 20))), CodeBundle, "tar"},
		{"cut short", fine[:len(fine)/2], CodeBundle, "unexpected EOF"},
		{"another checksum", flipped, CodeBundle, "checksum"},
		{"a second archive behind it", append(bytes.Clone(fine), tarball(t, file("b.rego", rule))...), CodeBundle, "more after the archive"},
		{"a gzip bomb", gzipped(t, make([]byte, 2*maxInflated)), codeTooLarge, ""},
		{"a bomb behind the archive's end", gzipped(t, append(raw(t, fine), make([]byte, 2*maxInflated)...)), codeTooLarge, ""},
		{"too many entries", tarball(t, many...), codeTooLarge, ""},
		{"a file of rules too large", tarball(t, file("a.rego", strings.Repeat("#", policy.FileLimit("a.rego")+1))), codeTooLarge, "a.rego"},
		{"data too large", tarball(t, good, file("data.json", `"`+strings.Repeat("x", policy.MaxTotal)+`"`)), codeTooLarge, "data.json"},
		{"all too large", tarball(t, good, file("a/data.json", `{"x":"`+strings.Repeat("x", 3<<20)+`"}`), file("b/data.json", `{"x":"`+strings.Repeat("x", 3<<20)+`"}`)), codeTooLarge, ""},
		{"another file too large", tarball(t, good, file("x.bin", strings.Repeat("x", maxOther+1))), codeTooLarge, "x.bin"},
		{"dots", tarball(t, file("../a.rego", rule)), CodeBundle, "not a plain name"},
		{"dots within", tarball(t, file("/a/../../b.rego", rule)), CodeBundle, "not a plain name"},
		{"two slashes", tarball(t, file("//etc/a.rego", rule)), CodeBundle, "not a plain name"},
		{"a dot and two slashes", tarball(t, file(".//a.rego", rule)), CodeBundle, "not a plain name"},
		{"a backslash", tarball(t, file(`a\b.rego`, rule)), CodeBundle, "not a plain name"},
		{"a newline", tarball(t, file("a\nb.rego", rule)), CodeBundle, "not a plain name"},
		{"a direction", tarball(t, file("a\u202eoger.rego", rule)), CodeBundle, "not a plain name"},
		{"a long name", tarball(t, file(strings.Repeat("a", maxName+1)+".rego", rule)), CodeBundle, "not a plain name"},
		{"a symlink", tarball(t, good, special(tar.TypeSymlink, "b.rego", "/etc/passwd")), CodeBundle, "not a regular file"},
		{"a hard link", tarball(t, good, special(tar.TypeLink, "b.rego", "a.rego")), CodeBundle, "not a regular file"},
		{"a device", tarball(t, good, special(tar.TypeChar, "b.rego", "")), CodeBundle, "not a regular file"},
		{"a pipe", tarball(t, good, special(tar.TypeFifo, "b.rego", "")), CodeBundle, "not a regular file"},
		{"a sparse file", sparseTarball(t, "posix"), CodeBundle, "not a regular file"},
		{"an old sparse file", sparseTarball(t, "gnu"), CodeBundle, "not a regular file"},
		{"twice", tarball(t, good, good), CodeBundle, "appears twice"},
		{"twice, once with a slash", tarball(t, good, file("/a.rego", "package fumehood.command")), CodeBundle, "appears twice"},
		{"WebAssembly", tarball(t, good, file("policy.wasm", "\x00asm")), CodeBundle, "WebAssembly"},
		{"WebAssembly by another name", tarball(t, good, file("x/other.wasm", "\x00asm")), CodeBundle, "WebAssembly"},
		{"a plan", tarball(t, good, file("plan.json", "{}")), CodeBundle, "plan"},
		{"a delta", tarball(t, file("patch.json", `{"data":[]}`)), CodeBundle, "delta"},
		{"a manifest elsewhere", tarball(t, good, file("x/.manifest", "{}")), CodeBundle, "top"},
		{"signatures elsewhere", tarball(t, good, file("x/.signatures.json", "{}")), CodeBundle, "top"},
		{"a manifest in protobuf", tarball(t, good, file(".manifest.pb", "")), CodeBundle, "JSON"},
		{"no manifest in it", tarball(t, good, file(".manifest", "[]")), CodeBundle, "manifest"},
		{"old Rego", tarball(t, good, file(".manifest", `{"rego_version":0}`)), CodeBundle, "Rego v1"},
		{"old Rego in a file", tarball(t, good, file(".manifest", `{"rego_version":1,"file_rego_versions":{"/a.rego":0}}`)), CodeBundle, "Rego v1"},
		{"a WebAssembly entrypoint", tarball(t, good, file(".manifest", `{"wasm":[{"entrypoint":"x","module":"/policy.wasm"}]}`)), CodeBundle, "WebAssembly"},
		{"a revision that commands", tarball(t, good, file(".manifest", `{"revision":"7\n::error::x"}`)), CodeBundle, "its revision contains"},
		{"a revision that turns round", tarball(t, good, file(".manifest", `{"revision":"7\u202e"}`)), CodeBundle, "its revision contains"},
		{"a revision without end", tarball(t, good, file(".manifest", `{"revision":"`+strings.Repeat("7", 201)+`"}`)), CodeBundle, "too long"},
		{"a copy without end", tarball(t, good, file(".manifest", `{"metadata":{"fumehood_max_copy_age":"721h"}}`)), CodeBundle, "at most 720h"},
		{"a copy for a number", tarball(t, good, file(".manifest", `{"metadata":{"fumehood_max_copy_age":3600}}`)), CodeBundle, "at most 720h"},
		{"roots that overlap", tarball(t, good, file(".manifest", `{"roots":["fumehood","fumehood/command"]}`)), CodeBundle, "overlap"},
		{"a module outside the roots", tarball(t, good, file(".manifest", `{"roots":["fumehood/exec"]}`)), CodeBundle, "outside the roots"},
		{"a module beside a root", tarball(t, good, file(".manifest", `{"roots":["fumehood/comm"]}`)), CodeBundle, "outside the roots"},
		{"no roots at all", tarball(t, good, file(".manifest", `{"roots":[]}`)), CodeBundle, "outside the roots"},
		{"data outside the roots", tarball(t, good, file("acme/data.json", `{"x":1}`), file(".manifest", `{"roots":["fumehood"]}`)), CodeBundle, "outside the roots"},
		{"no Rego in it", tarball(t, file("a.rego", "}{"), file(".manifest", `{"roots":["fumehood"]}`)), CodeBundle, "rego_parse_error"},
		{"data that is no object", tarball(t, good, file("data.json", "[1]")), "policy.data", "not an object"},
		{"data where packages are", tarball(t, good, file("fumehood/command/data.json", `{"allow":true}`)), "policy.data", "packages"},
		{"data where packages are, from the top", tarball(t, good, file("data.json", `{"fumehood":{"command":{"deny":[]}}}`)), "policy.data", "packages"},
		{"data said twice", tarball(t, good, file("data.json", `{"a":{"b":1}}`), file("a/data.json", `{"b":2}`)), "policy.data", "twice"},
		{"two values", tarball(t, good, file("data.json", `{} {}`)), "policy.data", "more after the first value"},
		{"aliases", tarball(t, good, file("data.yaml", "a: &a [x]\nb: [*a, *a]\n")), "policy.data", "alias"},
		{"two documents", tarball(t, good, file("data.yml", "a: 1\n---\nb: 1\n")), "policy.data", "second document"},
		{"deep data", tarball(t, good, file("data.json", `{"a":`+strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20)+"}")), "policy.data", "depth"},
		{"nothing that decides", tarball(t, file("a_test.rego", rule)), codeMissing, "no .rego"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Open("bundle.tar.gz", tt.data, Options{})
			wantCode(t, err, tt.code, tt.said)
			if err != nil && len(b.Layer.Files) > 0 {
				t.Error("a refused bundle has files")
			}
		})
	}
}

// What opa and tar write is read, whatever they put before the names.
func TestGoodBundles(t *testing.T) {
	for _, before := range []string{"", "/", "./"} {
		data := tarball(t, special(tar.TypeDir, before+"acme/", ""), file(before+".manifest", `{"revision":"7","roots":["fumehood","acme"],"metadata":{"x":[1]}}`),
			file(before+"a.rego", rule), file(before+"acme/data.json", `{"programs":["x"]}`), file(before+"README.md", "text"), file(before+"options.txt", "curl"))
		b, err := Open("bundle.tar.gz", data, Options{MinimumRevision: "7"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range b.Layer.Files {
			names = append(names, f.Name)
		}
		if got := strings.Join(names, " "); got != "a.rego acme/data.json" || b.Revision != "7" || b.SignedBy != "" {
			t.Errorf("with %q: files %q, revision %q, signed by %q", before, got, b.Revision, b.SignedBy)
		}
		if _, err := policy.New(t.Context(), policy.Options{Layers: []policy.Layer{b.Layer}}); err != nil {
			t.Error(err)
		}
	}
}

// FuzzOpen: whatever a bundle holds is refused with a code, or is a layer within bounds
// whose names stay in it.
func FuzzOpen(f *testing.F) {
	f.Add(tarball(f, file(".manifest", `{"revision":"7","roots":["fumehood","acme"]}`), file("a.rego", rule), file("acme/data.yaml", "a: 1")))
	f.Add(tarball(f, special(tar.TypeSymlink, "b.rego", "/etc/passwd")))
	f.Add(tarball(f, file("../a.rego", rule), file(".signatures.json", `{"signatures":["a.b.c"]}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		// Hardly a mutation is gzip with the right checksum: what is in it is tried too.
		for _, data := range [][]byte{data, gzipped(t, data)} {
			b, err := Open("bundle.tar.gz", data, Options{})
			if err != nil {
				if !strings.HasPrefix(code(err), "policy.") {
					t.Fatalf("code %q: %v", code(err), err)
				}
				continue
			}
			total := 0
			for _, f := range b.Layer.Files {
				if name, ok := entryName(f.Name); !ok || name != f.Name {
					t.Fatalf("name %q", f.Name)
				}
				total += len(f.Content)
			}
			if total > policy.MaxTotal || len(b.Layer.Files) == 0 {
				t.Fatalf("%d bytes in %d files", total, len(b.Layer.Files))
			}
		}
	})
}
