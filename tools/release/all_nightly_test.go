// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// installed installs the release in dir as a job on a runner of that architecture does: with
// the action's scripts, from a local server. It returns the directory of the programs, which
// every user can enter and only root can change.
func installed(t *testing.T, dir, arch string) string {
	t.Helper()
	place, err := os.MkdirTemp("/var/lib", "fumehood-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(place) })
	if err := os.Chmod(place, 0o755); err != nil {
		t.Fatal(err)
	}
	action := t.TempDir()
	for to, from := range map[string]string{".github/action/install.sh": "../../.github/action/install.sh", ".github/action/place.sh": "../../.github/action/place.sh",
		"release.env": filepath.Join(dir, "release.env")} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(action, to), string(text), 0o755)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "uname() { [ \"$1\" = -s ] && echo Linux || echo "+machine+"; }; export -f uname; exec bash "+action+"/.github/action/install.sh")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "FUMEHOOD_RELEASE_URL=" + server.URL, "FUMEHOOD_INSTALL_DIR=" + place, "RUNNER_TEMP=" + t.TempDir()}
	// Outside of a job fumehood stops, and another machine's does not start here.
	out, _ := cmd.CombinedOutput()
	found, err := filepath.Glob(filepath.Join(place, "*"))
	if err != nil || len(found) != 1 || !strings.HasPrefix(string(out), "fumehood "+testVersion+" for linux/"+arch+", SHA-256 ") {
		t.Fatalf("installed: %q (%v)\n%s", found, err, out)
	}
	return found[0]
}

// checkBOM compares the bill of materials with what the go command reads from the programs.
func checkBOM(t *testing.T, path, dir string, programs []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got bom
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	refs := map[string]bool{}
	for _, c := range got.Components {
		refs[c.Name+" "+c.Version] = true
		if c.Type == "library" && len(c.Licenses) == 0 {
			t.Errorf("no license of %s", c.Name)
		}
	}
	want := map[string]bool{}
	for _, name := range programs {
		out, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(dir, name)).Output()
		if err != nil {
			t.Fatal(err)
		}
		want[name+" "] = true
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if len(f) > 2 && (f[0] == "dep" && f[1] != "github.com/fumehood/fumehood" || f[0] == "=>" && !strings.HasPrefix(f[1], "..")) {
				want[f[1]+" "+f[2]] = true
			}
		}
	}
	want["std "+strings.TrimPrefix(runtime.Version(), "go")] = true
	if diff := cmp.Diff(want, refs); diff != "" || len(want) < 30 {
		t.Errorf("components (-programs +bill of materials):\n%s", diff)
	}
	if sum, err := digest(strings.TrimSuffix(path, ".cdx.json") + ".tar.gz"); err != nil || got.Metadata.Component.Hashes[0].Content != sum {
		t.Errorf("it is about another archive: %v (%v)", got.Metadata, err)
	}
}

// copySource copies the source of a build, so that it does not change during the test.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "cmd", "internal", "k8s", "pkg", "policies", "testdata", "tools"} {
		if out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(from, name), to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestNightlyRelease builds twice, in a checkout of the tag and in a copy elsewhere, with the same
// result. The action installs both architectures. The build for another architecture is for
// that architecture, and the build for this one is self-contained.
func TestNightlyRelease(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "another folder")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	copySource(t, "../..", one)
	copySource(t, one, other)
	build := func(t *testing.T, args ...string) {
		t.Helper()
		var said bytes.Buffer
		if code := run(t.Context(), append([]string{"--version", testVersion, "--node"}, args...), &said); code != 0 {
			t.Fatalf("exit code %d\n%s", code, &said)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q", "-m", "x"}, {"tag", testVersion}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", one}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Run("tag", func(t *testing.T) {
		t.Chdir(one) // as the release workflow does it, without --root
		build(t, "--out", first)
	})
	build(t, "--root", other, "--out", second, "--check", filepath.Join(first, "release.env"))
	for _, arch := range []string{"amd64", "arm64"} {
		name, node := "fumehood_"+testVersion+"_linux_"+arch, "fumehood-node_"+testVersion+"_linux_"+arch
		for _, file := range []string{name + ".tar.gz", name + ".cdx.json", node + ".tar.gz", node + ".cdx.json"} {
			want, err := os.ReadFile(filepath.Join(first, file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(second, file))
			if err != nil || !bytes.Equal(want, got) {
				t.Errorf("%s is not the same twice (%v)", file, err)
			}
		}
		t.Run(arch, func(t *testing.T) {
			dir := installed(t, first, arch)
			checkBOM(t, filepath.Join(first, name+".cdx.json"), dir, programs)
			checkArchive(t, dir, arch)
			checkNode(t, filepath.Join(first, node), arch)
		})
	}
}

// checkNode checks an archive for nodes, without its suffix. Its shim installs it on a node of this
// architecture.
func checkNode(t *testing.T, archive, arch string) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", archive+".tar.gz", "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkBOM(t, archive+".cdx.json", dir, nodePrograms)
	checkPrograms(t, dir, arch, nodePrograms...)
	if agent, err := os.ReadFile(filepath.Join(dir, "fumehood-node-agent")); err != nil || !bytes.Contains(agent, []byte(testVersion)) {
		t.Errorf("the node's agent does not have the version (%v)", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "fumehood")); err == nil {
		t.Error("an archive for nodes has fumehood")
	}
	if arch != runtime.GOARCH {
		return
	}
	root := filepath.Join(dir, "host")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "containerd-shim-fumehood-v1"), "install", "-root", root).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "installed /usr/local/lib/fumehood/") {
		t.Errorf("install: %v\n%s", err, out)
	}
	if _, err := os.Stat(root + "/etc/containerd/conf.d/fumehood.toml"); err != nil {
		t.Error(err)
	}
	// Its programs accept the released installation alone.
	manifest := filepath.Join(dir, "fumehood-runsc.json")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	write(t, manifest, string(text)+" ", 0o644)
	if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "containerd-shim-fumehood-v1"), "install", "-root", root).CombinedOutput(); err == nil {
		t.Errorf("a changed manifest was installed:\n%s", out)
	}
}

// checkPrograms checks that programs are for arch, and need no library.
func checkPrograms(t *testing.T, dir, arch string, names ...string) {
	t.Helper()
	machine := machines[arch]
	for _, name := range names {
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
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func checkArchive(t *testing.T, dir, arch string) {
	checkPrograms(t, dir, arch, "fumehood", "fumehood-init", "fumehood-runsc", "gvisor-bin/gvisor_sentry")
	_, err := os.Stat(filepath.Join(dir, "gvisor-bin/gvisor-sentry-prewarmer"))
	if native := arch == runtime.GOARCH; native != (err == nil) {
		t.Errorf("the prewarmer on %s: %v", arch, err)
	}
	if arch == runtime.GOARCH {
		checkRuns(t, dir)
	} else {
		checkStarts(t, dir, machines[arch])
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
