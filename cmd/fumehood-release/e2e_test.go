// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const testVersion = "v9.8.7"

// unpacked unpacks an archive as root, as the action does, to a directory that every user
// can enter.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	top, err := os.MkdirTemp("/var/lib", "fumehood-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "--no-same-owner", "-xzf", archive, "-C", top).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return top
}

// copySource copies the source of a build, so that it does not change during the test.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "cmd", "pkg", "policies", "testdata"} {
		if out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(from, name), to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestRelease builds twice, in two directories, with the same result. The build for another
// architecture is for that architecture, and the build for this one is self-contained.
func TestRelease(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "another folder")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	copySource(t, "../..", one)
	copySource(t, one, other)
	build := func(args ...string) {
		t.Helper()
		var said bytes.Buffer
		if code := run(t.Context(), append([]string{"--version", testVersion}, args...), &said); code != 0 {
			t.Fatalf("exit code %d\n%s", code, &said)
		}
	}
	build("--root", one, "--out", first)
	build("--root", other, "--out", second, "--check", filepath.Join(first, "release.env"))
	for _, arch := range []string{"amd64", "arm64"} {
		name := "fumehood_" + testVersion + "_linux_" + arch + ".tar.gz"
		want, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(second, name))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s is not the same twice (%v)", name, err)
		}
		t.Run(arch, func(t *testing.T) { checkArchive(t, filepath.Join(first, name), arch) })
	}
}

func checkArchive(t *testing.T, archive, arch string) {
	dir := unpacked(t, archive)
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	for _, name := range []string{"fumehood", "fumehood-init", "fumehood-runsc", "gvisor-bin/gvisor_sentry"} {
		f, err := elf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine {
			t.Errorf("%s is for %s, want %s", name, f.Machine, machine)
		}
		if interpreter := f.Section(".interp"); interpreter != nil {
			t.Errorf("%s needs a dynamic linker", name)
		}
		f.Close()
	}
	_, err := os.Stat(filepath.Join(dir, "gvisor-bin/gvisor-sentry-prewarmer"))
	if native := arch == runtime.GOARCH; native != (err == nil) {
		t.Errorf("the prewarmer on %s: %v", arch, err)
	}
	if arch == runtime.GOARCH {
		checkRuns(t, dir)
	} else {
		checkStarts(t, dir, machine)
	}
}

// checkStarts tries another machine's programs in an emulator, which can start no
// sandbox: only that they start and decide.
func checkStarts(t *testing.T, dir string, machine elf.Machine) {
	emulator := map[elf.Machine]string{elf.EM_AARCH64: "qemu-aarch64-static", elf.EM_X86_64: "qemu-x86_64-static"}[machine]
	if _, err := exec.LookPath(emulator); err != nil {
		t.Fatalf("%v; .ci/run installs it", err)
	}
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	write(t, plan, "schema: fumehood.plan/v1\nproposals:\n  - {id: it, run: go vet ./...}\n", 0o644)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"fumehood " + testVersion + "\n", []string{"fumehood", "version"}},
		{"allow it\n", []string{"fumehood", "check", "--plan", plan}},
		{"runsc version v0.0.0-", []string{"fumehood-runsc", "--version"}},
	} {
		c.args[0] = filepath.Join(dir, c.args[0])
		out, err := exec.CommandContext(t.Context(), emulator, c.args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v, want %q in\n%s", c.args, err, c.want, out)
		}
	}
}

// checkRuns starts a release where there is nothing else: no Go, no cache, no home.
func checkRuns(t *testing.T, dir string) {
	workspace, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	write(t, filepath.Join(workspace, "plan.yaml"), "schema: fumehood.plan/v1\nproposals:\n  - {id: it, run: cat seen.txt}\n", 0o644)
	write(t, filepath.Join(workspace, "seen.txt"), "seen by the sandbox\n", 0o644)
	start := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "fumehood"), args...)
		cmd.Dir, cmd.Env = workspace, []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "FUMEHOOD_CACHE=" + cache, "XDG_STATE_HOME=" + filepath.Join(workspace, ".state")}
		out, err := cmd.CombinedOutput()
		if failed := err != nil; failed != strings.HasPrefix(want, "sandbox.") || !strings.Contains(string(out), want) {
			t.Errorf("fumehood %s: %v, want %q in\n%s", strings.Join(args, " "), err, want, out)
		}
	}
	start("fumehood "+testVersion+"\n", "version")
	start("ok       prewarmer", "doctor")
	start("seen by the sandbox", "run", "--plan", "plan.yaml", "--workspace", ".")
	// A release builds nothing: of the cache it uses the versions of toolchains alone.
	kept, err := os.ReadDir(cache)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, k := range kept {
		if k.Name() != "versions.json" {
			t.Errorf("a release wrote %s to the cache", k.Name())
		}
	}
	// A manifest that is changed to match another runsc is not the released one.
	manifest := filepath.Join(dir, "fumehood-runsc.json")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	write(t, manifest, string(text)+" ", 0o644)
	start("sandbox.runsc-digest", "run", "--plan", "plan.yaml", "--workspace", ".")
}
