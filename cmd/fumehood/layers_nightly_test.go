// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/sandbox/install/installtest"
)

// A layersRun is a directory with a plan and a project whose set-up leaves a file of 64 MiB.
type layersRun struct{ dir, cache string }

func newLayersRun(t *testing.T) layersRun {
	t.Helper()
	l := layersRun{t.TempDir(), jobtest.BuildCache(t)}
	for name, text := range map[string]string{
		"plan.yaml":    "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: wc -c big}\n",
		"new.yaml":     "schema: fumehood.plan/v1\nproposals:\n  - {id: look, run: wc -c big && sleep 60, new-sandbox: true}\n",
		"config.yml":   "schema: fumehood.config/v1\nsetup: [python3 set_up.py]\nregistries: none\n",
		"ws/set_up.py": "import random\nopen('big', 'wb').write(random.Random(1).randbytes(64 << 20))\n",
	} {
		write(t, filepath.Join(l.dir, name), text)
	}
	return l
}

func (l layersRun) command(t *testing.T, name, layers string) *exec.Cmd {
	t.Helper()
	return l.fumehood(t, "--plan", "plan.yaml", "--layers", "write", "--layers-dir", layers, "--artifacts", name)
}

func (l layersRun) fumehood(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"run", "--workspace", "ws", "--config", "config.yml"}, args...)...)
	cmd.Dir, cmd.Env = l.dir, append(os.Environ(), asFumehood+"=1", "GITHUB_ACTIONS=", "FUMEHOOD_CACHE="+l.cache, "XDG_STATE_HOME="+filepath.Join(l.dir, "state"))
	return cmd
}

// run runs the plan to its end, and returns all that it printed.
func (l layersRun) run(t *testing.T, name, layers string) string {
	t.Helper()
	out, err := l.command(t, name, layers).CombinedOutput()
	size, err2 := os.ReadFile(filepath.Join(l.dir, name, "look.stdout"))
	if err != nil || err2 != nil || string(size) != "67108864 big\n" {
		t.Fatalf("%v, %v, %q\n%s", err, err2, size, out)
	}
	return string(out)
}

// THREATS 68: a run whose layer does not fit on the disk goes on without it, and leaves nothing.
func TestNightlyLayersFullDisk(t *testing.T) {
	t.Parallel()
	l, small := newLayersRun(t), t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	out := l.run(t, "one", filepath.Join(small, "layers"))
	if !strings.Contains(out, "warning: set-up is not kept in a layer: image.write") {
		t.Errorf("no warning:\n%s", out)
	}
	if left, err := os.ReadDir(filepath.Join(small, "layers")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// THREATS 68: a run that is killed while it makes a layer leaves none, and the next run makes
// it. Two runs at once leave one.
func TestNightlyLayersKilled(t *testing.T) {
	t.Parallel()
	l := newLayersRun(t)
	layers := filepath.Join(l.dir, "layers")
	killed := l.command(t, "killed", layers)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	jobtest.WaitUntil(t, "a layer that is being made", func() bool {
		files, _ := filepath.Glob(filepath.Join(layers, "making-*", "image"))
		return len(files) > 0
	})
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if made, _ := filepath.Glob(filepath.Join(layers, "*.layer")); len(made) > 0 {
		t.Fatalf("the killed run has made %q", made)
	}
	var outs [2]bytes.Buffer
	var both [2]*exec.Cmd
	for i := range both {
		both[i] = l.command(t, []string{"one", "two"}[i], layers)
		both[i].Stdout, both[i].Stderr = &outs[i], &outs[i]
		if err := both[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range both {
		err := cmd.Wait()
		size, err2 := os.ReadFile(filepath.Join(l.dir, []string{"one", "two"}[i], "look.stdout"))
		if err != nil || err2 != nil || string(size) != "67108864 big\n" || strings.Contains(outs[i].String(), "warning") {
			t.Errorf("%v, %v, %q\n%s", err, err2, size, &outs[i])
		}
	}
	if files, err := os.ReadDir(layers); err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".layer") {
		t.Errorf("left %v, %v", files, err)
	}
	if out := l.run(t, "three", layers); !strings.Contains(out, "from a layer") {
		t.Errorf("the layer is not used:\n%s", out)
	}
}

// THREATS 82: the private layer of a run that is killed is removed by the next run, also one that
// needs none, and not while its run lives.
func TestNightlyPrivateLayerKilled(t *testing.T) {
	t.Parallel()
	l := newLayersRun(t)
	killed := l.fumehood(t, "--plan", "new.yaml", "--artifacts", "killed")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	var made []string
	jobtest.WaitUntil(t, "a private layer", func() bool {
		for _, dir := range l.open(killed.Process.Pid) {
			made, _ = filepath.Glob(filepath.Join(dir, "*.layer"))
			if len(made) > 0 {
				return true
			}
		}
		return false
	})
	l.run(t, "beside", "layers")
	if _, err := os.Lstat(made[0]); err != nil {
		t.Errorf("the layer of a run that lives: %v", err)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	if _, err := os.Lstat(made[0]); err != nil {
		t.Fatalf("the killed run has removed its layer: %v", err)
	}
	l.run(t, "after", "layers")
	if _, err := os.Lstat(filepath.Dir(made[0])); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the layer of a killed run is left: %v", err)
	}
}

// open returns the directories of this cache that a process has open.
func (l layersRun) open(pid int) (dirs []string) {
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range list {
		if dir, err := os.Readlink(fd); err == nil && strings.HasPrefix(dir, filepath.Join(l.cache, "layers-of-run-")) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// THREATS 82: a private layer that does not fit on the disk is a warning, and new sandboxes have
// nothing of set-up.
func TestNightlyPrivateLayerFullDisk(t *testing.T) {
	t.Parallel()
	l, small := newLayersRun(t), t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	cmd := l.fumehood(t, "--plan", "new.yaml", "--artifacts", "one", "--runsc", installtest.Runsc(t).Path)
	cmd.Env = append(cmd.Env, "FUMEHOOD_CACHE="+small)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitRefused || !strings.Contains(string(out), "warning: set-up is not kept in a layer: image.write") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(small, "layers-of-run-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
