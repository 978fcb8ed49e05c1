// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A check is a step and what it must show: its exit code, and regular expressions of lines
// of what it prints.
type check struct {
	step
	exit int
	want []string
	more func(*testing.T, outcome)
	left string // the only thing that it may leave behind, a regular expression
}

const inside = "/opt/fumehood/fumehood"

// asRunner is a self-hosted runner's service: an ordinary user in a cgroup that systemd
// delegates to it.
func asRunner(argv ...string) []string {
	return append([]string{"systemd-run", "--quiet", "--wait", "--pipe", "--collect", "-p", "User=runner", "-p", "Delegate=yes", "-p", "Environment=HOME=/home/runner"}, argv...)
}

const notRoot = "^missing +root +cgroups, mounts and namespaces need root$"
const rootFix = "^ +fix: run fumehood as root or with sudo; a cgroup that systemd delegates to the user is not enough$"

// unread is what a killed run leaves until the next run; doctor does not remove it.
const unread = "^/tmp/fumehood-unread-"

var guestChecks = []check{
	{step: step{"host", []string{"sh", "-c", "uname -r; stat -fc %T /sys/fs/cgroup; cat /sys/module/apparmor/parameters/enabled; aa-status --profiled"}},
		want: []string{`^6\.1\.`, "^cgroup2fs$", "^Y$", "^[1-9]"}},

	{step: step{"Docker's defaults", []string{"unshare", "--mount", "bash", "/opt/container.sh", "docker"}}, exit: 3,
		want: []string{"^missing +root +.*SYS_ADMIN", "^missing +cgroup +.*read-only file system", "fix: .*docs/CONTAINER.md"}},
	{step: step{"cgroup namespace", []string{"unshare", "--mount", "bash", "/opt/container.sh", "private"}}, exit: 3,
		want: []string{"^missing +cgroup +.*busy", "fix: .*--cgroupns host"}},

	// The next run removes what a killed one has left.
	{step: step{"fumehood killed", []string{"bash", "/opt/killed.sh"}}, left: "fumehood", more: limitsStay},
	{left: unread, step: step{"documented container", []string{"unshare", "--mount", "bash", "/opt/container.sh", "documented"}},
		want: []string{"^ok +root ", "^ok +cgroup +version 2$", "^ok +sandbox ", "^ok +limits "}},
	{left: unread, step: step{"AppArmor forbids mounts", []string{"aa-exec", "-p", "guest-container", "--", inside, "doctor"}}, exit: 3,
		want: []string{"^missing +sandbox +", `fix: the AppArmor profile "guest-container \(enforce\)" forbids it: `}},
	{left: unread, step: step{"user without delegation", []string{"setpriv", "--reuid=runner", "--regid=runner", "--clear-groups", inside, "doctor"}}, exit: 3, want: []string{notRoot, rootFix}},
	{left: unread, step: step{"user with a delegated cgroup", asRunner(inside, "doctor")}, exit: 3, want: []string{notRoot, rootFix}},
	{left: unread, step: step{"root of a user namespace", asRunner("unshare", "--user", "--map-root-user", "--mount", inside, "doctor")}, exit: 3,
		want: []string{"^missing +cgroup +sandbox.cgroup: ", "fix: run as the host's root, outside of user namespaces"}},
	{left: unread, step: step{"user decides", asRunner(inside, "check", "--plan", "/opt/sleep.yaml")}, want: []string{"^allow sleeps$"}},
	{step: step{"limits", asRunner("sudo", "-n", inside, "run", "--plan", "/opt/limits.yaml", "--workspace", "/opt/ws", "--json")}, exit: 1, more: limitsHold},
}

// TestNightlyGuest runs fumehood on a host of its own: Linux 6.1 with systemd, cgroup v2 and
// AppArmor. After each step nothing of it may be left.
func TestNightlyGuest(t *testing.T) {
	var steps []step
	for _, c := range guestChecks {
		steps = append(steps, c.step)
	}
	outcomes := newGuest(t, "amd64").boot(15*time.Minute, steps)
	for _, c := range guestChecks {
		t.Run(c.Name, func(t *testing.T) { c.verify(t, outcomes[c.Name]) })
	}
}

func (c check) verify(t *testing.T, o outcome) {
	if o.Exit != c.exit {
		t.Errorf("exit code %d, want %d", o.Exit, c.exit)
	}
	for _, want := range c.want {
		if !regexp.MustCompile("(?m)" + want).MatchString(o.Stdout) {
			t.Errorf("no line %q", want)
		}
	}
	for _, left := range o.Left {
		if c.left == "" || !regexp.MustCompile(c.left).MatchString(left) {
			t.Errorf("left behind: %s", left)
		}
	}
	if c.more != nil {
		c.more(t, o)
	}
	if t.Failed() {
		t.Logf("%s%s", o.Stdout, o.Stderr)
	}
}

// containers are runc's specifications of containers that start doctor: with Docker's
// defaults and its profile's ban on mounts, as of a runner in Kubernetes; with the options of
// docs/CONTAINER.md; and with these in a cgroup namespace.
func (g *guest) containers(to string) {
	g.Helper()
	for _, kind := range []string{"docker", "documented", "private"} {
		bundle := g.TempDir()
		g.do("runc", "spec", "--bundle", bundle)
		b := &builder{T: g.T}
		var spec map[string]any
		b.readJSON(filepath.Join(bundle, "config.json"), &spec)
		containerSpec(spec, kind)
		data, err := json.Marshal(spec)
		if err != nil {
			g.Fatal(err)
		}
		write(g.T, filepath.Join(to, kind+".json"), string(data), 0o644)
	}
}

func containerSpec(spec map[string]any, kind string) {
	process := spec["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{inside, "doctor"}
	process["env"] = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	delete(process, "rlimits")
	names := dockerDefaults
	if kind == "docker" {
		process["apparmorProfile"] = "guest-container"
	} else {
		names = append([]string{"SYS_ADMIN", "NET_ADMIN"}, names...)
		delete(process, "noNewPrivileges")
	}
	var caps []string
	for _, name := range names {
		caps = append(caps, "CAP_"+name)
	}
	process["capabilities"] = map[string]any{"bounding": caps, "effective": caps, "permitted": caps}
	spec["root"] = map[string]any{"path": "root"}
	linux := spec["linux"].(map[string]any)
	// The test's host may lack cgroup v2, and then runc does not name this namespace.
	namespaces := slices.DeleteFunc(linux["namespaces"].([]any), func(n any) bool { return n.(map[string]any)["type"] == "cgroup" })
	if kind == "private" {
		namespaces = append(namespaces, map[string]any{"type": "cgroup"})
	}
	linux["namespaces"] = namespaces
	for _, m := range spec["mounts"].([]any) {
		m := m.(map[string]any)
		switch {
		case m["destination"] != "/sys/fs/cgroup":
		case kind == "documented":
			m["type"], m["source"], m["options"] = "bind", "/sys/fs/cgroup", []string{"rbind", "rw"}
		case kind == "private":
			m["options"] = []string{"nosuid", "noexec", "nodev", "relatime", "rw"}
		}
	}
}

// limitsStay wants the limits of sleep.yaml before and after systemd worked on its cgroups.
func limitsStay(t *testing.T, o outcome) {
	limits := "cpu.max:50000 100000\nmemory.max:268435456\nmemory.swap.max:0\npids.max:"
	before, after, _ := strings.Cut(o.Stdout, "units came and went\n")
	if !strings.HasPrefix(before, limits) || !strings.HasPrefix(after, before) {
		t.Errorf("limits before and after:\n%s", o.Stdout)
	}
}

// limitsHold wants what ended each command of limits.yaml.
func limitsHold(t *testing.T, o outcome) {
	var report struct {
		Records []struct {
			Proposal struct{ ID string }
			Result   struct {
				Status string
				Limit  string
				Usage  struct {
					WallMS   struct{ Value int64 } `json:"wall_ms"`
					UserMS   struct{ Value int64 } `json:"cpu_user_ms"`
					SystemMS struct{ Value int64 } `json:"cpu_system_ms"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(o.Stdout), &report); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range report.Records {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s: %s %s", r.Proposal.ID, r.Result.Status, r.Result.Limit)))
		u := r.Result.Usage
		if share := float64(u.UserMS.Value+u.SystemMS.Value) / float64(u.WallMS.Value); r.Proposal.ID == "processors" && (share < 0.05 || share > 0.65) {
			t.Errorf("two busy processes used %.2f processors, want at most 0.5", share)
		}
	}
	want := []string{"memory: out of memory memory 160 MiB", "after: exited", "processes: process limit processes 20", "processors: timed out wall 5s",
		"wall: timed out wall 1s", "disk: disk limit disk 8 MiB", "output: output limit output 1 MiB", "last: exited"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what ended the commands (-want +got):\n%s", diff)
	}
}
