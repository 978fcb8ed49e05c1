// SPDX-License-Identifier: Apache-2.0

// Package confine removes everything except for sockets from the gateway's process.
//
// The process reads untrusted bytes from both sides and is in the host's network
// namespace. After Self it has no files (an empty read-only root), an otherwise unused
// user ID, no capabilities and no way to gain any, no program to start, no other
// process to see, and bounded memory, files and threads. It keeps only the system calls
// that the Go runtime and TCP and UDP clients need: it cannot listen, open a file, or
// make a socket of another family. A system call that only an attacker makes kills it;
// any other that is not needed fails.
//
// # What it does not protect against
//
// The process can connect to any address that the host can, and only its own report
// says to which ones it did. It stays in the host's network namespace because that is
// the only one with a network.
package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ID is the user and group ID: one that no distribution assigns and that owns nothing.
const ID = 65533

const (
	maxFiles   = 4096
	maxThreads = 512       // for all processes of ID
	softMemory = 192 << 20 // from here the garbage collector works harder
	hardMemory = 512 << 20 // in addition to what the process has when it starts
)

// Self confines the calling process permanently. The process must be root in its own
// mount, pid, ipc and uts namespaces, with an empty capability bounding set and no
// environment. Descriptors 0 to 4 stay open. The process ends when its parent does.
func Self() error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"descriptors", closeDescriptors}, {"namespaces", checkNamespaces}, {"limits", setResourceLimits}, {"root", emptyRoot},
		{"user", switchUser}, {"death", dieWithParent}, {"dump", notDumpable}, {"capabilities", checkNoCapabilities}, {"calls", installSeccompFilter},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("cannot confine the gateway (%s): %w", step.name, err)
		}
	}
	return nil
}

// closeDescriptors closes inherited descriptors: all that were not passed on purpose and do
// not belong to the runtime.
func closeDescriptors() error {
	if len(os.Environ()) > 0 {
		return errors.New("the environment is not empty")
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 4 {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue // the directory itself, already closed
		}
		if err != nil || !strings.HasPrefix(to, "anon_inode:[event") {
			_ = unix.Close(fd)
		}
	}
	return nil
}

// checkNamespaces returns an error if it would remove the host's mounts.
func checkNamespaces() error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("process %d is not the first of its namespace", pid)
	}
	return nil
}

func setResourceLimits() error {
	has, err := dataSize()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(softMemory)
	for _, l := range []struct {
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_NPROC, maxThreads}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_MEMLOCK, 0}, {unix.RLIMIT_MSGQUEUE, 0}, {unix.RLIMIT_DATA, has + hardMemory},
	} {
		// syscall's, not unix's: os.StartProcess would undo unix's for files.
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("limit %d: %w", l.resource, err)
		}
	}
	return nil
}

// dataSize returns the memory that currently counts against RLIMIT_DATA, in bytes.
func dataSize() (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmData:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("no VmData in /proc/self/status")
	}
	kib, err := strconv.ParseUint(fields[0], 10, 40)
	return kib << 10, err
}

// emptyRoot makes an empty file system the only one.
func emptyRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	// Any directory will do: it is covered.
	const at = "/proc"
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("none", at, "tmpfs", flags, "size=4k,nr_inodes=2,mode=0555"); err != nil {
		return err
	}
	if err := unix.Mount("", at, "", flags|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil { // the old root, now on top
		return err
	}
	return unix.Chdir("/")
}

// switchUser switches all threads to ID, which drops their capabilities.
func switchUser() error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(ID, ID, ID); err != nil {
		return err
	}
	return syscall.Setresuid(ID, ID, ID)
}

// dieWithParent restores the setting that the change of user cleared. It belongs to a
// thread, so the thread must be kept: the calling goroutine should live as long as the
// process.
func dieWithParent() error {
	runtime.LockOSThread()
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

func notDumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// checkNoCapabilities returns an error if a capability is left or can be regained.
func checkNoCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for _, d := range data {
		if d.Effective != 0 || d.Permitted != 0 {
			return fmt.Errorf("capabilities not dropped: %x", d.Permitted)
		}
	}
	for c := uintptr(0); ; c++ {
		left, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return nil // beyond the last capability that this kernel knows
		}
		if left != 0 {
			return fmt.Errorf("capability %d not dropped from the bounding set", c)
		}
	}
}
