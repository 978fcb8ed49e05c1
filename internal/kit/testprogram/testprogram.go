// SPDX-License-Identifier: Apache-2.0

// Package testprogram gives tests a small static program that sleeps, allocates, forks,
// prints, connects or listens. A test that needs only some program uses it, and then no
// interpreter or network tool must be on the machine.
//
// The commands are listed in program/main.go. The program is built once for each version
// of its source and of Go, and kept in the user's cache directory.
package testprogram

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Name is the name of the file that Install makes.
const Name = "testprogram"

//go:embed program/*.go
var sources embed.FS

// Path returns the path of the program. Do not change the file: other tests run it too.
func Path(t testing.TB) string {
	t.Helper()
	source, err := fs.Sub(sources, "program")
	failOnError(t, err)
	return buildCached(t, Name, source, func(dir string) *exec.Cmd {
		failOnError(t, os.CopyFS(dir, source))
		// imports the standard library only
		cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", Name, "main.go")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO111MODULE=off")
		return cmd
	})
}

// Install copies the program into dir and returns the path of the copy.
func Install(t testing.TB, dir string) string {
	t.Helper()
	content, err := os.ReadFile(Path(t))
	failOnError(t, err)
	path := filepath.Join(dir, Name)
	WriteExecutable(t, path, content)
	return path
}

// WriteExecutable writes a file that the test starts. A process that another test forks
// meanwhile has a file of os.WriteFile open for writing until its exec, and the kernel
// starts no such file: text file busy.
func WriteExecutable[T string | []byte](t testing.TB, path string, content T) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(content), 0o755)
	syscall.ForkLock.RUnlock()
	failOnError(t, err)
	failOnError(t, os.Chmod(path, 0o755)) // whatever the umask is
}

// Build returns the path of a static program, built from the package in dir, a path below
// the test's directory. What the package imports from this module must not change its
// result, because only the files in dir are compared.
func Build(t testing.TB, dir string) string {
	t.Helper()
	name := filepath.Base(dir)
	return buildCached(t, name, os.DirFS(dir), func(temporary string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-buildvcs=false", "-o",
			filepath.Join(temporary, name), "./"+dir)
	})
}

// buildCached returns the kept program of source, or calls command to build it in an empty directory.
func buildCached(t testing.TB, name string, source fs.FS, command func(dir string) *exec.Cmd) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	failOnError(t, err)
	kept := filepath.Join(cache, "fumehood-test", digestSource(t, source), name)
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	failOnError(t, os.MkdirAll(filepath.Dir(kept), 0o755))
	dir, err := os.MkdirTemp(filepath.Dir(kept), "build-")
	failOnError(t, err)
	defer os.RemoveAll(dir)
	cmd := command(dir)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", name, err, out)
	}
	failOnError(t, os.Chmod(filepath.Join(dir, name), 0o755))
	failOnError(t, os.Rename(filepath.Join(dir, name), kept))
	return kept
}

// digestSource identifies the files of a package and the compiler.
func digestSource(t testing.TB, source fs.FS) string {
	t.Helper()
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOARCH)
	names, err := fs.Glob(source, "*.go")
	failOnError(t, err)
	for _, name := range names {
		content, err := fs.ReadFile(source, name)
		failOnError(t, err)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:16])
}

func failOnError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
