// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// cgroupMount is where distributions mount the cgroup file systems.
const cgroupMount = "/sys/fs/cgroup"

// A cgroup holds a sandbox: its kernel and the guest's processes, nothing else.
// fumehood makes, limits and reads it itself, because the limits must apply before
// runsc runs its first instruction and the counters are needed after runsc is gone.
type cgroup struct {
	v2   bool
	dirs map[string]string // controller → directory; on v2 all have the same directory
	top  string            // on v2 the directory of that one; see leafName

	peakFile *os.File // memory.peak on v2, if it can be reset
}

// controllers are those that a limit or a measured figure depends on.
var controllers = []string{"memory", "cpu", "cpuacct", "pids"}

// newCgroup makes the cgroup name in parent, a path under mount, which has the cgroups of all
// controllers. It fails if a controller that a limit needs is missing.
func newCgroup(mount, parent, name string) (*cgroup, error) {
	if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
		return newCgroup2(filepath.Join(mount, parent), name)
	}
	c := &cgroup{dirs: map[string]string{}}
	for _, controller := range controllers {
		base := filepath.Join(mount, controller, parent)
		if _, err := os.Stat(base); err != nil {
			c.remove()
			return nil, fmt.Errorf("cgroup controller %q is not mounted under %s, or lacks the cgroup %q", controller,
				mount, parent)
		}
		dir := filepath.Join(base, name)
		// cpu and cpuacct are one hierarchy on many distributions.
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			c.remove()
			return nil, err
		}
		c.dirs[controller] = dir
	}
	return c, nil
}

// CheckCgroup makes a cgroup, limits it and removes it, and so reports whether this process
// can enforce limits. The error is a *proposal.StopError.
func CheckCgroup() error {
	id, err := newID()
	if err != nil {
		return noState(err)
	}
	c, err := newCgroup(cgroupMount, "", "fumehood-"+id)
	if err != nil {
		return noCgroup(err)
	}
	err = c.setLimits(proposal.Limits{Memory: 64 * proposal.MiB, CPUs: 1, Pids: 64})
	if err = errors.Join(err, c.remove()); err != nil {
		return noLimit(err)
	}
	return nil
}

func noLimit(err error) error {
	return newStopError("sandbox.cgroup", "this host cannot enforce a limit", "see fumehood doctor", err)
}

// noCgroup says why no cgroup can be made. Containers have their own reasons: a user
// namespace, a read-only mount, and on version 2 a cgroup namespace, whose root has processes
// and so cannot have limited children.
func noCgroup(err error) error {
	hint := "run as root with a writable /sys/fs/cgroup; for a container see docs/CONTAINER.md"
	switch {
	case errors.Is(err, unix.EACCES):
		hint = "run as the host's root, outside of user namespaces and rootless containers; for a container see docs/CONTAINER.md"
	case errors.Is(err, unix.EROFS):
		hint = "mount /sys/fs/cgroup writable: start the container with --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup; see docs/CONTAINER.md"
	case errors.Is(err, unix.EBUSY):
		hint = "start the container in the host's cgroup namespace, with --cgroupns host -v /sys/fs/cgroup:/sys/fs/cgroup; see docs/CONTAINER.md"
	}
	return newStopError("sandbox.cgroup", "cannot make the cgroup that enforces limits", hint, err)
}

func newCgroup2(mount, name string) (*cgroup, error) {
	if err := enableControllers(mount); err != nil {
		return nil, err
	}
	c := &cgroup{v2: true, dirs: map[string]string{}, top: filepath.Join(mount, name)}
	dir := filepath.Join(c.top, leafName)
	for _, controller := range controllers {
		c.dirs[controller] = dir
	}
	if err := os.Mkdir(c.top, 0o755); err != nil {
		return nil, err
	}
	err := os.WriteFile(filepath.Join(c.top, "cgroup.subtree_control"), []byte("+memory +cpu +pids"), 0)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// leafName is the version 2 cgroup with the limits and the processes, below the sandbox's.
// systemd takes a controller from the root's children when no unit needs it any more, and
// with it a limit. The kernel refuses that while one of them has given it to a child.
const leafName = "sandbox"

// enableControllers enables our controllers for children of a cgroup without processes.
func enableControllers(mount string) error {
	path := filepath.Join(mount, "cgroup.subtree_control")
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	enabled := strings.Fields(string(have))
	for _, controller := range []string{"memory", "cpu", "pids"} {
		if slices.Contains(enabled, controller) {
			continue
		}
		if err := os.WriteFile(path, []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("cgroup controller %q cannot be enabled: %w", controller, err)
		}
	}
	return nil
}

func (c *cgroup) writeControl(controller, file, value string) error {
	path := filepath.Join(c.dirs[controller], file)
	// No O_CREATE: a control file that the kernel does not offer is an error.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("cannot set limit: %v", err)
	}
	_, err = f.WriteString(value)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot set limit %s to %s: %v", path, value, err)
	}
	return nil
}

func (c *cgroup) readControl(controller, file string) string {
	data, _ := os.ReadFile(filepath.Join(c.dirs[controller], file))
	return strings.TrimSpace(string(data))
}

// setLimits sets the limits that the host's kernel enforces. It may be called again while
// the sandbox runs.
func (c *cgroup) setLimits(l proposal.Limits) error {
	if c.v2 {
		return c.setLimitsV2(l)
	}
	memory := strconv.FormatInt(int64(l.Memory), 10)
	return errors.Join(
		c.limitMemory1(memory),
		c.writeControl("cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)),
		c.writeControl("cpu", "cpu.cfs_quota_us", strconv.FormatInt(int64(l.CPUs*cpuPeriod), 10)),
		c.writeControl("pids", "pids.max", strconv.FormatInt(hostPids(l), 10)),
	)
}

// limitMemory1 sets memory and memory+swap. The first must never exceed the second,
// not even between the two writes.
func (c *cgroup) limitMemory1(memory string) error {
	const swap = "memory.memsw.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(c.dirs["memory"], swap)); err != nil {
		// The kernel does not account for swap: keep the sandbox out of it.
		return errors.Join(c.writeControl("memory", "memory.limit_in_bytes", memory),
			c.writeControl("memory", "memory.swappiness", "0"))
	}
	if c.writeControl("memory", swap, memory) == nil { // raising
		return c.writeControl("memory", "memory.limit_in_bytes", memory)
	}
	return errors.Join(c.writeControl("memory", "memory.limit_in_bytes", memory),
		c.writeControl("memory", swap, memory))
}

func (c *cgroup) setLimitsV2(l proposal.Limits) error {
	errs := []error{
		c.writeControl("memory", "memory.max", strconv.FormatInt(int64(l.Memory), 10)),
		c.writeControl("cpu", "cpu.max", fmt.Sprintf("%d %d", int64(l.CPUs*cpuPeriod), cpuPeriod)),
		c.writeControl("pids", "pids.max", strconv.FormatInt(hostPids(l), 10)),
	}
	if _, err := os.Stat(filepath.Join(c.dirs["memory"], "memory.swap.max")); err == nil {
		errs = append(errs, c.writeControl("memory", "memory.swap.max", "0"))
	}
	return errors.Join(errs...)
}

// enterThread moves the calling thread into a v1 cgroup, so that the process it starts next
// starts in it. On v2 the process is cloned into the directory instead.
func (c *cgroup) enterThread() error {
	if c.v2 {
		return nil
	}
	tid := strconv.Itoa(unix.Gettid())
	for _, controller := range controllers {
		if err := c.writeControl(controller, "tasks", tid); err != nil {
			return err
		}
	}
	return nil
}

// clockTick is the unit of cpuacct.stat: USER_HZ is 100 on every supported
// architecture.
const clockTick = 10 * time.Millisecond

// A usage is a reading of the counters.
type usage struct {
	oomKills int64
	pidHits  int64
	cpu      time.Duration
	user     time.Duration
	system   time.Duration
}

func (c *cgroup) readUsage() usage {
	if c.v2 {
		return usage{
			oomKills: parseNamedCount(c.readControl("memory", "memory.events"), "oom_kill"),
			pidHits:  parseNamedCount(c.readControl("pids", "pids.events"), "max"),
			cpu:      time.Duration(parseNamedCount(c.readControl("cpu", "cpu.stat"), "usage_usec")) * time.Microsecond,
			user:     time.Duration(parseNamedCount(c.readControl("cpu", "cpu.stat"), "user_usec")) * time.Microsecond,
			system: time.Duration(parseNamedCount(c.readControl("cpu", "cpu.stat"),
				"system_usec")) * time.Microsecond,
		}
	}
	stat := c.readControl("cpuacct", "cpuacct.stat")
	return usage{
		user:   time.Duration(parseNamedCount(stat, "user")) * clockTick,
		system: time.Duration(parseNamedCount(stat, "system")) * clockTick,

		oomKills: parseNamedCount(c.readControl("memory", "memory.oom_control"), "oom_kill"),
		pidHits:  parseNamedCount(c.readControl("pids", "pids.events"), "max"),
		cpu:      time.Duration(parseCount(c.readControl("cpuacct", "cpuacct.usage"))),
	}
}

// measurePeak starts a measurement of the peak, and returns the memory in use now.
func (c *cgroup) measurePeak() (held proposal.Bytes) {
	if !c.v2 {
		_ = c.writeControl("memory", "memory.max_usage_in_bytes", "0")
		return proposal.Bytes(parseCount(c.readControl("memory", "memory.usage_in_bytes")))
	}
	c.resetPeak2()
	return proposal.Bytes(parseCount(c.readControl("memory", "memory.current")))
}

// resetPeak2 opens memory.peak and resets it: since Linux 6.12, each open file has a peak
// of its own. Before, the file cannot be written, and the peak is that of the whole run.
// See Documentation/admin-guide/cgroup-v2.rst.
func (c *cgroup) resetPeak2() {
	c.closePeak()
	f, err := os.OpenFile(filepath.Join(c.dirs["memory"], "memory.peak"), os.O_RDWR, 0)
	if err != nil {
		return
	}
	if _, err := f.WriteString("reset"); err != nil {
		_ = f.Close()
		return
	}
	c.peakFile = f
}

func (c *cgroup) closePeak() {
	if c.peakFile != nil {
		_ = c.peakFile.Close()
		c.peakFile = nil
	}
}

// peakMemory returns the most memory in use since measurePeak.
func (c *cgroup) peakMemory() proposal.Bytes {
	if !c.v2 {
		return proposal.Bytes(parseCount(c.readControl("memory", "memory.max_usage_in_bytes")))
	}
	if c.peakFile == nil {
		return proposal.Bytes(parseCount(c.readControl("memory", "memory.peak")))
	}
	var text [32]byte
	n, _ := c.peakFile.ReadAt(text[:], 0)
	return proposal.Bytes(parseCount(strings.TrimSpace(string(text[:n]))))
}

// waitForReclaim waits until the memory of an earlier command is given back, for a short time:
// gVisor does that after the command's end.
func (c *cgroup) waitForReclaim() {
	file := "memory.usage_in_bytes"
	if c.v2 {
		file = "memory.current"
	}
	before := parseCount(c.readControl("memory", file))
	for range settleRounds {
		time.Sleep(settleRound)
		now := parseCount(c.readControl("memory", file))
		if now >= before-settled {
			return
		}
		before = now
	}
}

const (
	settleRounds = 25
	settleRound  = 10 * time.Millisecond
	settled      = 1 << 20 // bytes a round

	// heavyGrowth is the growth after which giving memory back takes noticeable time.
	heavyGrowth = 64 << 20
)

// killProcesses sends SIGKILL to every process in the cgroup and reports whether it is empty.
func (c *cgroup) killProcesses() bool {
	if c.v2 && c.writeControl("memory", "cgroup.kill", "1") == nil {
		return c.readControl("pids", "cgroup.procs") == ""
	}
	pids := strings.Fields(c.readControl("pids", "cgroup.procs"))
	empty := true
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil || pid == os.Getpid() { // our launcher's thread is listed with our process id
			continue
		}
		empty = false
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return empty
}

// remove removes the cgroup. A v1 directory may stay busy for a moment after its last
// thread is gone.
func (c *cgroup) remove() error {
	c.closePeak()
	var last error
	for _, dir := range c.dirs {
		last = errors.Join(last, removeDir(dir))
	}
	if c.v2 {
		last = errors.Join(last, removeDir(c.top))
	}
	return last
}

func removeDir(dir string) error {
	for end := time.Now().Add(removeGrace); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Rmdir(dir)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(end) {
			return fmt.Errorf("cannot remove cgroup %q: %v", dir, err)
		}
	}
}

func parseCount(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// parseNamedCount returns the number after name in a file of "name number" lines.
func parseNamedCount(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return parseCount(f[1])
		}
	}
	return 0
}

// attachProcess makes a process that is started with attr start in the cgroup: on v2 it is
// cloned into it, on v1 it inherits it from its parent thread, which has entered it.
func (c *cgroup) attachProcess(attr *syscall.SysProcAttr) (func() error, error) {
	if !c.v2 {
		return func() error { return nil }, nil
	}
	dir, err := os.Open(c.dirs["memory"])
	if err != nil {
		return nil, err
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	return dir.Close, nil
}

// eachProcess calls f with every process in the cgroup except for this one. A cgroup
// that cannot be read or is empty is an error, because then nothing was checked.
func (c *cgroup) eachProcess(f func(pid string) error) error {
	data, err := os.ReadFile(filepath.Join(c.dirs["pids"], "cgroup.procs"))
	if err != nil {
		return err
	}
	self, seen := strconv.Itoa(os.Getpid()), 0
	for _, pid := range strings.Fields(string(data)) {
		if pid == self {
			continue
		}
		seen++
		if err := f(pid); err != nil {
			return err
		}
	}
	if seen == 0 {
		return errors.New("the sandbox's cgroup has no process")
	}
	return nil
}
