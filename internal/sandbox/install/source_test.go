// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestGVisorVersionIsThePinnedOne(t *testing.T) {
	root := tree(t)
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(file.Require, func(r *modfile.Require) bool { return r.Mod.Path == "gvisor.dev/gvisor" })
	if i < 0 {
		t.Fatal("go.mod does not require gvisor.dev/gvisor")
	}
	if got := file.Require[i].Mod.Version; got != GVisorVersion {
		t.Errorf("go.mod pins gVisor %s, GVisorVersion is %s", got, GVisorVersion)
	}
	for _, r := range file.Replace {
		if r.Old.Path == "gvisor.dev/gvisor" {
			t.Errorf("go.mod replaces gVisor by %s", r.New.Path)
		}
	}
}

// The key must cover everything that the go command compiles of this module, or
// a changed source would run an old build.
func TestSourceRootsCoverTheBuild(t *testing.T) {
	lanetest.SkipShort(t)
	root := tree(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}",
		"./cmd/"+runscName, "./cmd/"+initName)
	cmd.Dir, cmd.Env = root, append(buildEnv(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}
	for _, dir := range strings.Fields(string(out)) {
		name, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		covered := slices.ContainsFunc(sourceRoots, func(r string) bool { return name == r || strings.HasPrefix(name, r+"/") })
		if !covered {
			t.Errorf("%s is compiled in, but no source root covers it", name)
		}
	}
}

func TestSourceKey(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put("go.mod", "module x\n")
	put("cmd/fumehood-runsc/main.go", "package main\n")
	last := key(t, root)
	steps := []struct {
		name, file, text string
		changes          bool
	}{
		{"a test", "cmd/fumehood-runsc/main_test.go", "package main\n", false},
		{"another command", "cmd/other/main.go", "package main\n", false},
		{"a line", "cmd/fumehood-runsc/main.go", "package main\n\n", true},
		{"a file", "cmd/fumehood-runsc/internal/x/x.go", "package x\n", true},
		{"a version", "go.mod", "module x\n// v2\n", true},
	}
	for _, s := range steps {
		put(s.file, s.text)
		now := key(t, root)
		if (now != last) != s.changes {
			t.Errorf("%s: the key changed: %t, want %t", s.name, now != last, s.changes)
		}
		last = now
	}
}

// A program that contains its manifest's digest uses no other installation.
func TestReleaseUsesItsOwnInstallation(t *testing.T) {
	releaseDigest = strings.Repeat("0", 64)
	t.Cleanup(func() { releaseDigest = "" })
	_, err := Find(t.Context(), Options{Build: true})
	wantCode(t, err, CodeMissing)

	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	m := manifest{Schema: manifestSchema, GVisor: GVisorVersion, Platform: hostPlatform()}
	if err := errors.Join(m.writeManifest(dir), os.Mkdir(filepath.Join(dir, sidecarDir), 0o755),
		os.WriteFile(filepath.Join(dir, runscName), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), Options{Path: filepath.Join(dir, runscName)})
	wantCode(t, err, CodeDigest)
	if !strings.Contains(err.Error(), "not the one that was released") {
		t.Errorf("err = %v, want it to name the release", err)
	}
}

// A local build must not recompile what "go run" of fumehood compiled: on two
// processors that would add 13 s to a new user's first minutes.
func TestLocalBuildReusesPackagesOfGoRun(t *testing.T) {
	lanetest.SkipShort(t)
	shared := []string{"reflect", "google.golang.org/protobuf/proto", "gvisor.dev/gvisor/pkg/abi/linux"}
	if run, here := exports(t, "", nil, shared), exports(t, "0", localFlags, shared); run != here {
		t.Errorf("go run compiles\n%sthe build of %s compiles\n%s", run, runscName, here)
	}
}

// exports lists the compiled packages in the build cache.
func exports(t *testing.T, cgo string, flags, packages []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"list", "-export", "-f", "{{.ImportPath}} {{.Export}}"}, flags, packages)...)
	cmd.Dir, cmd.Env = tree(t), append(buildEnv(), "CGO_ENABLED="+cgo, "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list the compiled packages: %v", err)
	}
	return string(out)
}

func TestLockGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reported []string
	_, err = lockFile(ctx, path, func(line string) { reported = append(reported, line); cancel() })
	if !errors.Is(err, context.Canceled) || len(reported) != 1 {
		t.Errorf("waiting for a held lock: %v after saying %q; want it cancelled after one line", err, reported)
	}
	unlock()
	if unlock, err = lockFile(t.Context(), path, func(string) {}); err != nil {
		t.Fatalf("a freed lock is not given: %v", err)
	}
	unlock()
}

func TestBuildEnvKeepsSecretsOut(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "canary")
	t.Setenv("GOFLAGS", "-toolexec=/canary")
	t.Setenv("LD_PRELOAD", "/canary")
	t.Setenv("https_proxy", "http://proxy.example")
	env := strings.Join(buildEnv(), "\n")
	if strings.Contains(env, "canary") {
		t.Errorf("the compiler would see:\n%s", env)
	}
	if !strings.Contains(env, "https_proxy=http://proxy.example") || !strings.Contains(env, "PATH=") {
		t.Errorf("the compiler would miss what it needs:\n%s", env)
	}
}

func tree(t *testing.T) string {
	t.Helper()
	root, err := sourceTree()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// The key is of the files, not of how their directory is named.
func TestKeyOfRelativeRoot(t *testing.T) {
	root := tree(t)
	want := key(t, root)
	t.Chdir(root)
	for _, name := range []string{".", "./", "../" + filepath.Base(root), root + "/"} {
		if got := key(t, name); got != want {
			t.Errorf("the key of %q is %s, want %s", name, got, want)
		}
	}
}

func key(t *testing.T, root string) string {
	t.Helper()
	k, err := sourceKey(root, hostPlatform())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var stop *proposal.StopError
	if !errors.As(err, &stop) || stop.Code != code {
		t.Errorf("err = %v, want the code %s", err, code)
	}
}
