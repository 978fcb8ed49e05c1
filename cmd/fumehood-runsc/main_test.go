// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

func TestVersionIsStamped(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), installtest.Runsc(t).Path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "runsc version " + install.GVisorVersion + "\n"; !strings.HasPrefix(string(out), want) {
		t.Errorf("--version prints %q, want %q first", out, want)
	}
}

func TestOtherSubcommandsAreGone(t *testing.T) {
	for _, name := range []string{"do", "checkpoint", "debug", "install", "sandbox-exec", "port-forward"} {
		out, err := exec.CommandContext(t.Context(), installtest.Runsc(t).Path, name).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 128 {
			t.Errorf("%s: %v %q, want exit status 128", name, err, out)
		}
	}
}

// The purpose of this binary is that a sandbox finds its seccomp programs
// precompiled. Without them it still works, only slowly, and this would go unnoticed.
// runsc's own debug log shows which was the case. The prewarmer, which needs a C
// compiler, is tested in the end-to-end lane.
func TestSandboxStartsTheFastWay(t *testing.T) { startFast(t, installtest.Runsc(t)) }

// startFast starts sandboxes, checks what they loaded, and returns what runsc logged about their start.
func startFast(t *testing.T, r install.Runsc) (logged []string) {
	t.Helper()
	b := bundle(t, "/bin/echo", "hello from inside")
	for _, directfs := range []bool{true, false} {
		t.Run(fmt.Sprintf("directfs=%t", directfs), func(t *testing.T) {
			log := t.TempDir()
			args := append(flags(t), fmt.Sprintf("--directfs=%t", directfs), "--debug", "--debug-log="+log+"/%COMMAND%.log",
				"run", "--bundle="+b, "fast-way")
			out, err := runsc(t, r.Path, args...).CombinedOutput()
			if err != nil || string(out) != "hello from inside\n" {
				t.Fatalf("the sandbox said %q, %v", out, err)
			}
			wantLogged(t, log, "boot.log", fmt.Sprintf("HostFilesystem=%t", directfs))
			wantLogged(t, log, "gofer.log", fmt.Sprintf("DirectFS=%t", directfs))
			text, err := os.ReadFile(filepath.Join(log, "run.log"))
			if err != nil {
				t.Fatal(err)
			}
			logged = append(logged, string(text))
		})
	}
	return logged
}

func wantLogged(t *testing.T, dir, name, part string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "Loaded precompiled seccomp instructions") && strings.Contains(line, part) {
			return
		}
	}
	t.Errorf("%s does not say that a compiled seccomp program with %s was loaded", name, part)
}

// flags returns the flags of every run here: a new state directory, no network.
func flags(t testing.TB) []string {
	return []string{"--root=" + stateDir(t), "--platform=systrap", "--network=none", "--ignore-cgroups"}
}

// stateDir returns a directory for --root. runsc leaves the gofers' empty network
// namespace mounted in it, and it can be removed only after an unmount.
func stateDir(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		for unix.Unmount(filepath.Join(dir, "null-netns"), unix.MNT_DETACH) == nil {
		}
	})
	return dir
}

// runsc returns a command with an empty environment and no terminal.
func runsc(t testing.TB, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	return cmd
}

// bundle writes an OCI bundle that runs argv on a root file system with only
// argv[0] and the libraries that it needs.
func bundle(t testing.TB, argv ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range append(libraries(t, argv[0]), argv[0]) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "rootfs", path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := json.Marshal(map[string]any{
		"ociVersion": "1.2.0",
		"root":       map[string]any{"path": "rootfs", "readonly": true},
		"process": map[string]any{
			"args": argv, "cwd": "/", "env": []string{"PATH=/bin"}, "noNewPrivileges": true,
			"user": map[string]any{"uid": 65534, "gid": 65534}, "capabilities": map[string]any{},
		},
		"linux": map[string]any{"namespaces": []map[string]any{
			{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), spec, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// libraries lists the shared objects that ldd prints for program.
func libraries(t testing.TB, program string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	if err != nil {
		t.Fatalf("cannot list the libraries of %s: %v", program, err)
	}
	var paths []string
	for _, field := range strings.Fields(string(out)) {
		if filepath.IsAbs(field) {
			paths = append(paths, field)
		}
	}
	return paths
}
