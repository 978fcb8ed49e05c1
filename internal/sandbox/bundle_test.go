// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/pkg/proposal"
)

var update = flag.Bool("update", false, "rewrite golden files")

// testLimits are limits that a test reaches quickly if it means to, except for Wall:
// tests that need a short one set it, and a busy machine must not reach it.
func testLimits() proposal.Limits {
	return proposal.Limits{
		Wall: proposal.Duration(time.Hour), CPUs: 1.5, Memory: 512 * proposal.MiB, Pids: 128,
		Disk: 64 * proposal.MiB, Files: 1024, Output: 64 * proposal.MiB,
	}
}

// The OCI spec is the contract with runsc: it determines what applies, on hosts with
// cgroup v1 and v2 alike. The golden file shows any change to it in review.
func TestSpecGolden(t *testing.T) {
	l := layout{
		ID: "0123456789abcdef", Root: "/state/root", Init: "/lib/fumehood-init", Upper: "/state/upper",
		Binds: []Bind{{"/usr", "/usr"}}, Trees: []tree{{Bind{"/state/trees/0", "/workspace"}, false}, {Bind{"/proc/self/fd/3", "/cache"}, true}},
		UID: 1001, GID: 1002, Limits: testLimits(), Cgroup: "/fumehood-0123456789abcdef",
	}
	spec, err := l.ociSpec()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "config.json")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// controlFiles makes a directory that looks like a cgroup file system, because no test
// can have both real versions.
func controlFiles(t *testing.T, names ...string) string {
	t.Helper()
	mount := t.TempDir()
	for _, name := range names {
		path := filepath.Join(mount, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return mount
}

func readAll(t *testing.T, mount string, names ...string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(mount, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(data)
	}
	return got
}

func TestCgroup2Limits(t *testing.T) {
	files := []string{"s/memory.max", "s/memory.swap.max", "s/cpu.max", "s/pids.max"}
	mount := controlFiles(t, append(files, "cgroup.controllers", "cgroup.subtree_control")...)
	c := &cgroup{v2: true, dirs: map[string]string{}}
	for _, controller := range controllers {
		c.dirs[controller] = filepath.Join(mount, "s")
	}
	if err := c.setLimits(testLimits()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"s/memory.max": "536870912", "s/memory.swap.max": "0", "s/cpu.max": "150000 100000", "s/pids.max": "1512",
	}
	if diff := cmp.Diff(want, readAll(t, mount, files...)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

// A missing control file means a limit that cannot be enforced.
func TestCgroup2LimitMissing(t *testing.T) {
	for _, missing := range []string{"memory.max", "cpu.max", "pids.max"} {
		t.Run(missing, func(t *testing.T) {
			mount := controlFiles(t, "memory.max", "cpu.max", "pids.max")
			if err := os.Remove(filepath.Join(mount, missing)); err != nil {
				t.Fatal(err)
			}
			c := &cgroup{v2: true, dirs: map[string]string{"memory": mount, "cpu": mount, "cpuacct": mount, "pids": mount}}
			if err := c.setLimits(testLimits()); err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("error %v, want one that names %s", err, missing)
			}
		})
	}
}

func TestCgroup2Delegation(t *testing.T) {
	mount := controlFiles(t, "cgroup.controllers", "cgroup.subtree_control")
	control := filepath.Join(mount, "cgroup.subtree_control")
	if err := os.WriteFile(control, []byte("cpuset memory pids\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := newCgroup(mount, "", "s")
	if err != nil {
		t.Fatal(err)
	}
	if !c.v2 {
		t.Error("not taken for version 2")
	}
	// memory and pids were enabled already; cpu (not cpuset) had to be requested.
	if got := readAll(t, mount, "cgroup.subtree_control")["cgroup.subtree_control"]; got != "+cpu" {
		t.Errorf("last written to subtree_control: %q, want +cpu", got)
	}
	// The sandbox's own cgroup gives them to a child, so that no other process can take them away.
	if got := readAll(t, mount, "s/cgroup.subtree_control")["s/cgroup.subtree_control"]; got != "+memory +cpu +pids" {
		t.Errorf("the sandbox's cgroup gives its child %q", got)
	}
	if want := filepath.Join(mount, "s", leafName); c.dirs["memory"] != want {
		t.Errorf("the limits are those of %q, want %q", c.dirs["memory"], want)
	}
}

func TestUsageFields(t *testing.T) {
	const events = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n"
	if got := parseNamedCount(events, "oom_kill"); got != 1 {
		t.Errorf("oom_kill %d, want 1", got)
	}
	if got := parseNamedCount(events, "absent"); got != 0 {
		t.Errorf("absent %d, want 0", got)
	}
}

func TestCovers(t *testing.T) {
	run := testLimits()
	for name, change := range map[string]func(*proposal.Limits){
		"no wall":    func(l *proposal.Limits) { l.Wall = 0 },
		"no cpu":     func(l *proposal.Limits) { l.CPUs = 0 },
		"no memory":  func(l *proposal.Limits) { l.Memory = 0 },
		"no pids":    func(l *proposal.Limits) { l.Pids = 0 },
		"no disk":    func(l *proposal.Limits) { l.Disk = 0 },
		"no files":   func(l *proposal.Limits) { l.Files = 0 },
		"no output":  func(l *proposal.Limits) { l.Output = 0 },
		"more pids":  func(l *proposal.Limits) { l.Pids++ },
		"more disk":  func(l *proposal.Limits) { l.Disk++ },
		"more files": func(l *proposal.Limits) { l.Files++ },
		"negative":   func(l *proposal.Limits) { l.Memory = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			l := run
			change(&l)
			if checkLimitsCovered(run, l) == nil {
				t.Errorf("limits %+v were accepted", l)
			}
		})
	}
	if err := checkLimitsCovered(run, run); err != nil {
		t.Error(err)
	}
}

// A lower disk limit is enforced by gVisor's kernel at the supervisor's request, so it
// is refused without that connection.
func TestLowerDisk(t *testing.T) {
	o := Options{Limits: testLimits(), UnwatchedUnsafe: true}
	g := proposal.Grant{Limits: o.Limits}
	g.Limits.Disk--
	if checkGrant(o, g) == nil {
		t.Error("a limit that is not enforced was accepted")
	}
	o.UnwatchedUnsafe = false
	if err := checkGrant(o, g); err != nil {
		t.Error(err)
	}
}

// An image as root leaves no other mount out.
func TestMountsOfImages(t *testing.T) {
	l := layout{Image: "/images/root", Layer: "/images/layer", Trees: []tree{{Bind{"/images/ws", guest.Workspace}, true}, {Bind{"/cache", "/home/fumehood/cache"}, false}}}
	got := map[string]string{}
	for _, m := range l.listMounts() {
		got[m.Destination] = m.Type + " " + m.Source
	}
	for at, want := range map[string]string{
		guest.Image: "erofs /images/root", guest.Layer: "erofs /images/layer", guest.Lower + "/0": "erofs /images/ws", guest.Lower + "/1": "bind /cache",
	} {
		if got[at] != want {
			t.Errorf("%s: %q, want %q", at, got[at], want)
		}
	}
}
