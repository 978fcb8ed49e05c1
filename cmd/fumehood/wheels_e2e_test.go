// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pytestWheels are the Debian packages of pytest, of what it needs, and of what builds a
// project with a pyproject.toml.
var pytestWheels = []string{"python3-pytest", "python3-iniconfig", "python3-pluggy", "python3-packaging", "python3-attr", "python3-setuptools-whl", "python3-wheel-whl"}

// wheels returns the Python packages in Debian packages as wheels, by file name. Debian has
// real wheels of some; the others are packed as their build would.
func wheels(t *testing.T, packages ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	download := exec.CommandContext(t.Context(), "apt-get", append([]string{"download", "-qq"}, packages...)...)
	download.Dir = dir
	runCommand(t, download)
	all := map[string]string{}
	for i, deb := range glob(t, dir, "*.deb") {
		root := filepath.Join(dir, fmt.Sprint(i))
		runCommand(t, exec.CommandContext(t.Context(), "dpkg-deb", "-x", deb, root))
		for _, file := range glob(t, root, "usr/share/python-wheels/*.whl") {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(file)] = string(data)
		}
		for _, info := range glob(t, root, "usr/lib/python3/dist-packages/*-info") {
			name, data := pack(t, info)
			all[name] = data
		}
	}
	return all
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var infoDir = regexp.MustCompile(`^([^-]+-[^-]+)\.(?:dist|egg)-info$`)

// pack makes a wheel of an installed package from the directory of its metadata.
func pack(t *testing.T, info string) (name, data string) {
	t.Helper()
	m := infoDir.FindStringSubmatch(filepath.Base(info))
	if m == nil {
		t.Fatalf("no name and version in %s", info)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var record strings.Builder
	add := func(file string, data []byte) {
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&record, "%s,,\n", file)
	}
	site := os.DirFS(filepath.Dir(info))
	err := fs.WalkDir(site, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(site, file)
		if err != nil {
			return err
		}
		if path.Dir(file) != filepath.Base(info) {
			add(file, data)
			return nil
		}
		switch kept := path.Base(file); kept {
		case "METADATA", "PKG-INFO":
			add(m[1]+".dist-info/METADATA", data)
		case "entry_points.txt":
			add(m[1]+".dist-info/"+kept, data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	add(m[1]+".dist-info/WHEEL", []byte("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"))
	add(m[1]+".dist-info/RECORD", []byte(record.String()))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return m[1] + "-py3-none-any.whl", b.String()
}
