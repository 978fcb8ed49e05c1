// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

// tree creates a directory like a release's, with its own path, time and umask.
func tree(t *testing.T, when time.Time, program os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	write(t, filepath.Join(dir, "runsc"), "runsc", program)
	write(t, filepath.Join(dir, "LICENSE"), "text", 0o600)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o700), os.Link(filepath.Join(dir, "runsc"), filepath.Join(dir, "bin/sentry"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runsc", "LICENSE", "bin", "."} {
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func packed(t *testing.T, dir string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if err := pack(dir, path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPackTakesNamesModesAndContentsOnly(t *testing.T) {
	one := packed(t, tree(t, time.Unix(1e9, 5), 0o755))
	if two := packed(t, tree(t, time.Now(), 0o555)); !bytes.Equal(one, two) {
		t.Error("two times, umasks and folders make two archives")
	}
	zipped, err := gzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name, Link, Text string
		Kind             byte
		Mode             int64
		Owner, Seconds   int64
	}
	var got []entry
	for archive := tar.NewReader(zipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{h.Name, h.Linkname, string(text), h.Typeflag, h.Mode, int64(h.Uid + h.Gid), h.ModTime.Unix()})
	}
	want := []entry{
		{Name: "LICENSE", Text: "text", Kind: tar.TypeReg, Mode: 0o644},
		{Name: "bin/", Kind: tar.TypeDir, Mode: 0o755},
		{Name: "bin/sentry", Text: "runsc", Kind: tar.TypeReg, Mode: 0o755},
		{Name: "runsc", Link: "bin/sentry", Kind: tar.TypeLink, Mode: 0o755},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPackRefuses(t *testing.T) {
	dir := tree(t, time.Now(), 0o755)
	if err := os.Symlink("runsc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "archive")
	if err := pack(dir, path); err == nil || !strings.Contains(err.Error(), `"link" is neither a file nor a directory`) {
		t.Errorf("a symbolic link: %v", err)
	}
	if err := pack(dir, path); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another archive: %v", err)
	}
}

func TestUsage(t *testing.T) {
	lanetest.SkipShort(t)
	out := filepath.Join(t.TempDir(), "out")
	for name, args := range map[string][]string{
		"no directory":         {},
		"an argument":          {"--out", out, "now"},
		"a version with blank": {"--out", out, "--version", "v1.2.3 -X main.x=y"},
		"a version with path":  {"--out", out, "--version", "v1.2.3/../x"},
		"no version":           {"--out", out, "--version", "latest"},
		"an unknown flag":      {"--sign"},
	} {
		if code := run(t.Context(), args, io.Discard); code != 2 {
			t.Errorf("%s: exit code %d, want 2", name, code)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was built")
	}
	var said bytes.Buffer
	if code := run(t.Context(), []string{"--out", out, "--arch", "riscv64", "--root", "../.."}, &said); code != 3 || !strings.Contains(said.String(), "there is no release for riscv64") {
		t.Errorf("another machine: exit code %d\n%s", code, &said)
	}
}

func TestCompare(t *testing.T) {
	b := built{"VERSION=v1.2.3", "GO=go1", "SHA256_ARCHIVE_AMD64=aa"}
	path := filepath.Join(t.TempDir(), "release.env")
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"itself", string(b.text()), nil},
		{"another digest", "VERSION=v1.2.3\nGO=go1\nSHA256_ARCHIVE_AMD64=bb\n", []string{"- SHA256_ARCHIVE_AMD64=bb", "+ SHA256_ARCHIVE_AMD64=aa"}},
		{"a line less", "VERSION=v1.2.3\nGO=go1\n", []string{"+ SHA256_ARCHIVE_AMD64=aa"}},
		{"a line more", string(b.text()) + "URL=x\n", []string{"- URL=x"}},
		{"nothing", "", []string{"- ", "+ VERSION=v1.2.3", "+ GO=go1", "+ SHA256_ARCHIVE_AMD64=aa"}},
	} {
		write(t, path, c.text, 0o644)
		if diff := cmp.Diff(c.want, b.compare(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if got := b.compare(path + ".none"); len(got) != 1 {
		t.Errorf("no file: %q", got)
	}
}

// install.sh finds an earlier build by a digest of the same files.
func TestSourcesAreThoseOfTheInstaller(t *testing.T) {
	script, err := os.ReadFile("../../.github/action/install.sh")
	if err != nil {
		t.Fatal(err)
	}
	if find := "find " + strings.Join(sources, " ") + " !"; !strings.Contains(string(script), find) {
		t.Errorf("install.sh does not have %q", find)
	}
}
