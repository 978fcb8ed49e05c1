// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/egress/netns"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/rootfs"
	"github.com/fumehood/fumehood/pkg/sandbox"
	"github.com/fumehood/fumehood/pkg/sandbox/install"
)

func doctorDoor() *door {
	return &door{
		name:     "doctor",
		synopsis: "say what this host can enforce, and the fix for what it cannot",
		usage: `[flags]

exit codes: 0 commands can run, 3 they cannot

examples:
  fumehood doctor
  fumehood doctor --json | jq '.[] | select(.state != "ok")'
`,
		run: runDoctor,
	}
}

// A check is one thing that was looked at.
type check struct {
	Name   string `json:"name"`
	State  string `json:"state"` // "ok", "slow" (works, at a cost), "limited" (not all works) or "missing" (nothing runs)
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`
}

func runDoctor(c *call) int {
	var s setup
	var asJSON bool
	f := c.flags()
	f.StringVar(&s.runsc, "runsc", "", "look at this fumehood-runsc")
	f.BoolVar(&asJSON, "json", false, "print the checks as JSON")
	if code, ok := c.parse(f); !ok {
		return code
	}
	checks := c.examine(&s)
	code := exitOK
	for _, k := range checks {
		if k.State == "missing" {
			code = exitStopped
		}
	}
	if asJSON {
		if err := json.NewEncoder(c.stdout).Encode(checks); err != nil {
			return c.stopped(err)
		}
		return code
	}
	for _, k := range checks {
		fmt.Fprintf(c.stdout, "%-8s %-14s %s\n", k.State, k.Name, printable(k.Detail))
		if k.Fix != "" {
			fmt.Fprintf(c.stdout, "%-8s %-14s fix: %s\n", "", "", printable(k.Fix))
		}
	}
	return code
}

func (c *call) examine(s *setup) []check {
	checks := []check{checkSystem(), checkRoot(), checkCgroup(), checkNetwork()}
	if gate.Privileged() != nil {
		return checks // building runsc would take a minute or two, and nothing could run in it
	}
	runsc, err := install.Find(c.ctx, install.Options{Path: s.runsc, Build: true, Progress: newProgress(c.stderr).always})
	if err != nil {
		return append(checks, failedCheck("runsc", err))
	}
	checks = append(checks, check{Name: "runsc", State: "ok", Detail: runsc.Version + " at " + runsc.Path}, checkPrewarmer(runsc))
	return append(checks, c.checkSandbox(runsc)...)
}

func failedCheck(name string, err error) check {
	f := proposal.FailureOf(err)
	return check{Name: name, State: "missing", Detail: f.Code + ": " + f.Message, Fix: f.Hint}
}

func checkSystem() check {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	k := check{Name: "system", State: "ok", Detail: runtime.GOOS + "/" + runtime.GOARCH + " " + unix.ByteSliceToString(uts.Release[:])}
	if _, err := os.Stat("/bin/bash"); err != nil {
		k.State, k.Detail, k.Fix = "missing", "/bin/bash is not there; shell text is run by it", "install bash"
	}
	return k
}

func checkRoot() check {
	if gate.Privileged() == nil {
		return check{Name: "root", State: "ok", Detail: "cgroups, mounts and namespaces can be made"}
	}
	return check{Name: "root", State: "missing", Detail: "cgroups, mounts and namespaces need root", Fix: "run fumehood as root or with sudo"}
}

// checkNetwork is no reason that commands cannot run: those that are granted a host
// cannot.
func checkNetwork() check {
	if err := netns.Available(); err != nil {
		k := failedCheck("network", err)
		k.State, k.Detail = "limited", "commands run, but none with a host granted: "+k.Detail
		return k
	}
	return check{Name: "network", State: "ok", Detail: "the gateway can be made for hosts that policy grants"}
}

func checkCgroup() check {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return check{Name: "cgroup", State: "ok", Detail: "version 2"}
	}
	for _, controller := range []string{"memory", "cpu", "cpuacct", "pids"} {
		if _, err := os.Stat("/sys/fs/cgroup/" + controller); err != nil {
			return check{Name: "cgroup", State: "missing", Detail: "no cgroup controller " + controller, Fix: "mount cgroup version 2 at /sys/fs/cgroup"}
		}
	}
	return check{Name: "cgroup", State: "slow", Detail: "version 1: entering a cgroup costs 10–20 ms a sandbox", Fix: "boot with cgroup version 2"}
}

func checkPrewarmer(r install.Runsc) check {
	if r.Prewarmed {
		return check{Name: "prewarmer", State: "ok", Detail: "built"}
	}
	return check{Name: "prewarmer", State: "slow", Detail: "left out: each sandbox starts 8–16 ms later", Fix: "install gcc or clang, and remove the cached build"}
}

// checkSandbox is the proof: one command inside.
func (c *call) checkSandbox(r install.Runsc) []check {
	began := time.Now()
	result, limits, err := c.tryCommand(r, "cat /proc/version; head -n 1 /proc/meminfo; nproc")
	if err != nil {
		return []check{failedCheck("sandbox", err)}
	}
	if !result.Succeeded() {
		return []check{{Name: "sandbox", State: "missing", Detail: "a command inside ended with: " + outcome(&result)}}
	}
	version, machine, _ := strings.Cut(string(result.Stdout.Head), "\n")
	return []check{{Name: "sandbox", State: "ok", Detail: fmt.Sprintf("%s, first command after %s", version, time.Since(began).Round(time.Millisecond))},
		checkMachine(machine, limits)}
}

// checkMachine says whether runtimes that size themselves by the machine stay within
// the limits.
func checkMachine(seen string, limits proposal.Limits) check {
	var memory proposal.Bytes
	var processors int
	if n, err := fmt.Sscanf(seen, "MemTotal: %d kB\n%d", &memory, &processors); n != 2 || err != nil || memory*proposal.KiB != limits.Memory {
		return check{Name: "limits", State: "limited", Detail: "limits hold, but programs inside see the host's memory and may size themselves by it",
			Fix: "use the fumehood-runsc of this version"}
	}
	return check{Name: "limits", State: "ok", Detail: fmt.Sprintf("programs inside see their limits as the machine: of %s and %g processors, %s and %d",
		limits.Memory, limits.CPUs, memory*proposal.KiB, processors)}
}

// tryCommand runs text in a sandbox of its own.
func (c *call) tryCommand(r install.Runsc, text string) (proposal.Result, proposal.Limits, error) {
	limits := proposal.Limits{Wall: proposal.Duration(time.Minute), CPUs: 1, Memory: 512 * proposal.MiB,
		Pids: 64, Disk: 64 * proposal.MiB, Files: 256, Output: proposal.MiB}
	root, err := rootfs.Open("host", os.Getenv("PATH"))
	if err != nil {
		return proposal.Result{}, limits, err
	}
	workspace, err := os.MkdirTemp("", "fumehood-doctor-")
	if err != nil {
		return proposal.Result{}, limits, err
	}
	defer os.RemoveAll(workspace)
	options, err := gate.SandboxOptions(workspace, root, r)
	if err != nil {
		return proposal.Result{}, limits, err
	}
	options.Limits, options.UnwatchedUnsafe = limits, true // the command is ours
	runner, err := sandbox.New(options)
	if err != nil {
		return proposal.Result{}, limits, err
	}
	defer runner.Close()
	result, err := runner.Run(c.ctx, proposal.Execution{ID: "doctor", Text: text, Grant: proposal.Grant{Limits: limits}})
	return result, limits, err
}
