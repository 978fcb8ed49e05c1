// SPDX-License-Identifier: Apache-2.0

// Package doctor checks what this host can enforce, and says how to fix the rest.
package doctor

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/egress/netns"
	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// States of a Check.
const (
	OK      = "ok"
	Slow    = "slow"    // works, at a cost
	Limited = "limited" // not all works
	Unknown = "unknown" // could not be checked
	Missing = "missing" // no command can run
)

// A Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

// IsReady reports whether nothing is missing.
func IsReady(checks []Check) bool {
	return !slices.ContainsFunc(checks, func(k Check) bool { return k.State == Missing })
}

// Write writes a line for each check, and one for its fix. The error is w's.
func Write(w io.Writer, checks []Check) error {
	for _, k := range checks {
		lines := fmt.Sprintf("%-8s %-14s %s\n", k.State, k.Name, terminal.EscapeLine(k.Detail))
		if k.Fix != "" {
			lines += fmt.Sprintf("%-8s %-14s fix: %s\n", "", "", terminal.EscapeLine(k.Fix))
		}
		if _, err := io.WriteString(w, lines); err != nil {
			return err
		}
	}
	return nil
}

// ExamineHost looks at the host, and where commands can run, runs one. path is that of
// fumehood-runsc, "" for the installed one; notice is called with a line about work that
// takes long.
func ExamineHost(ctx context.Context, path string, notice func(string)) []Check {
	checks := append([]Check{checkSystem(), checkRoot(), checkCgroup(), checkNetwork()},
		checkTools(ctx, rootfs.CallerPath())...)
	if !IsReady(checks) {
		return checks // building runsc would take a minute or two, and nothing could run in it
	}
	runsc, err := install.Find(ctx, install.Options{Path: path, Build: true, Progress: notice})
	if err != nil {
		return append(checks, FailedCheck("runsc", err))
	}
	checks = append(checks, Check{Name: "runsc", State: OK, Detail: runsc.Version + " at " + runsc.Path},
		checkPrewarmer(runsc))
	return append(checks, CheckSandbox(ctx, runsc)...)
}

// FailedCheck returns the check that err ended.
func FailedCheck(name string, err error) Check {
	f := proposal.FailureOf(err)
	return Check{Name: name, State: Missing, Detail: f.Code + ": " + f.Message, Fix: f.Hint}
}

func checkSystem() Check {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	k := Check{Name: "system", State: OK,
		Detail: runtime.GOOS + "/" + runtime.GOARCH + " " + unix.ByteSliceToString(uts.Release[:])}
	if _, err := os.Stat("/bin/bash"); err != nil {
		k.State, k.Detail, k.Fix = Missing, "/bin/bash is missing; it runs shell text", "install bash"
	}
	return k
}

// checkRoot also looks at the capabilities: root of a container has few of them.
func checkRoot() Check {
	switch {
	case process.CheckRoot() != nil:
		return Check{Name: "root", State: Missing, Detail: "cgroups, mounts and namespaces need root",
			Fix: "run fumehood as root or with sudo; a cgroup that systemd delegates to the user is not enough"}
	case !hasCapabilities(unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN):
		return Check{Name: "root", State: Missing,
			Detail: "this process is root without the capabilities SYS_ADMIN and NET_ADMIN, as in a container",
			Fix:    "start the container with the options of docs/CONTAINER.md"}
	}
	return Check{Name: "root", State: OK, Detail: "this process may create cgroups, mounts and namespaces"}
}

// hasCapabilities reports whether this process has capabilities, each below 32.
func hasCapabilities(capabilities ...int) bool {
	var sets [2]unix.CapUserData
	if unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]) != nil {
		return false
	}
	return !slices.ContainsFunc(capabilities, func(c int) bool { return sets[0].Effective&(1<<c) == 0 })
}

// checkNetwork returns Limited at worst: only commands that are granted a host need it.
func checkNetwork() Check {
	if err := netns.CheckAvailable(); err != nil {
		k := FailedCheck("network", err)
		k.State, k.Detail = Limited, "commands run, except for those that are granted a host: "+k.Detail
		return k
	}
	return Check{Name: "network", State: OK, Detail: "the gateway for hosts that policy grants can be created"}
}

// checkTools returns the toolchains that commands see, and a check for each directory of
// PATH with tools that are other ones inside.
func checkTools(ctx context.Context, path string) []Check {
	search := rootfs.Search{Path: path}
	root, err := search.Open("host")
	if err != nil {
		return []Check{FailedCheck("tools", err)}
	}
	found := environment.FindToolchains(ctx, root, search)
	var names []string
	for _, t := range found {
		names = append(names, strings.TrimSpace(t.Name+" "+t.Version))
	}
	k := Check{Name: "tools", State: OK, Detail: "commands see " + strings.Join(names, ", ")}
	if len(names) == 0 {
		k.Detail = "commands see no compiler or interpreter"
	}
	checks := []Check{k}
	for _, s := range root.Shadows {
		checks = append(checks, Check{Name: "tools", State: Limited, Detail: root.Describe(s, found), Fix: s.Fix})
	}
	return checks
}

// checkCgroup makes a cgroup where that is possible at all: a mount that is there can be
// read-only or lack a controller.
func checkCgroup() Check {
	if process.CheckRoot() == nil {
		if err := sandbox.CheckCgroup(); err != nil {
			return FailedCheck("cgroup", err)
		}
	}
	return checkCgroupVersion()
}

func checkCgroupVersion() Check {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return Check{Name: "cgroup", State: OK, Detail: "version 2"}
	}
	for _, controller := range []string{"memory", "cpu", "cpuacct", "pids"} {
		if _, err := os.Stat("/sys/fs/cgroup/" + controller); err != nil {
			return Check{Name: "cgroup", State: Missing, Detail: "no cgroup controller " + controller,
				Fix: "mount cgroup version 2 at /sys/fs/cgroup"}
		}
	}
	return Check{Name: "cgroup", State: Slow, Detail: "version 1: entering a cgroup takes 10–20 ms per sandbox",
		Fix: "boot with cgroup version 2"}
}

func checkPrewarmer(r install.Runsc) Check {
	if r.Prewarmed {
		return Check{Name: "prewarmer", State: OK, Detail: "built"}
	}
	return Check{Name: "prewarmer", State: Slow, Detail: "not built: each sandbox starts 8–16 ms later",
		Fix: "install gcc or clang, and remove the cached build"}
}

// CheckSandbox is the proof: one command inside.
func CheckSandbox(ctx context.Context, r install.Runsc) []Check {
	began := time.Now()
	result, limits, err := tryCommand(ctx, r, "cat /proc/version; head -n 1 /proc/meminfo; nproc")
	if err != nil {
		return []Check{FailedCheck("sandbox", err)}
	}
	if !result.Succeeded() {
		return []Check{{Name: "sandbox", State: Missing, Detail: "a command inside ended with: " + result.Outcome()}}
	}
	version, machine, _ := strings.Cut(string(result.Stdout.Head), "\n")
	return []Check{{Name: "sandbox", State: OK,
		Detail: fmt.Sprintf("%s, first command after %s", version, time.Since(began).Round(time.Millisecond))},
		checkMachine(machine, limits)}
}

// checkMachine says whether runtimes that size themselves by the machine stay within
// the limits.
func checkMachine(seen string, limits proposal.Limits) Check {
	var memory proposal.Bytes
	var processors int
	if n, err := fmt.Sscanf(seen, "MemTotal: %d kB\n%d", &memory, &processors); n != 2 || err != nil ||
		memory*proposal.KiB != limits.Memory {
		return Check{Name: "limits", State: Limited,
			Detail: "limits are enforced, but programs inside see the host's memory and may size themselves by it",
			Fix:    "use the fumehood-runsc of this version"}
	}
	return Check{Name: "limits", State: OK,
		Detail: fmt.Sprintf("programs inside see their limits as the machine: of %s and %g processors, %s and %d",
			limits.Memory, limits.CPUs, memory*proposal.KiB, processors)}
}

// tryCommand runs text in a new sandbox.
func tryCommand(ctx context.Context, r install.Runsc, text string) (proposal.Result, proposal.Limits, error) {
	limits := proposal.Limits{Wall: proposal.Duration(time.Minute), CPUs: 1, Memory: 512 * proposal.MiB,
		Pids: 64, Disk: 64 * proposal.MiB, Files: 256, Output: proposal.MiB}
	root, err := rootfs.Open("host", rootfs.CallerPath())
	if err != nil {
		return proposal.Result{}, limits, err
	}
	workspace, err := os.MkdirTemp("", "fumehood-doctor-")
	if err != nil {
		return proposal.Result{}, limits, err
	}
	defer os.RemoveAll(workspace)
	options, err := environment.SandboxOptions(workspace, root, r)
	if err != nil {
		return proposal.Result{}, limits, err
	}
	options.Limits, options.UnwatchedUnsafe = limits, true // the command is ours
	runner, err := sandbox.New(options)
	if err != nil {
		return proposal.Result{}, limits, err
	}
	defer runner.Close()
	result, err := runner.Run(ctx, sandbox.Execution{ID: "doctor", Text: text, Grant: proposal.Grant{Limits: limits}})
	return result, limits, err
}
