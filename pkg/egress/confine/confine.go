// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package confine takes away from the gateway's process everything but sockets.
//
// The process reads what strangers send, on both sides, and stands in the host's
// network. Self leaves it no file (an empty read-only root), no user of its own but one
// that nobody else has, no capability nor a way to one, no program to start, no other
// process to see, bounded memory, files and threads, and of system calls those that the
// Go runtime and TCP and UDP clients need: it cannot listen, open a file, or make a
// socket of another family. A call of those that only an attacker makes kills it; any
// other that is not needed is refused.
//
// # What it does not protect against
//
// The process may connect to any address that the host may: which ones it connects to
// is its own word. It is in the host's network namespace because that is where the
// network is.
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

// ID is the user and group: one that no distribution gives out, and that owns nothing.
const ID = 65533

const (
	maxFiles   = 4096
	maxThreads = 512       // of all processes of ID
	softMemory = 192 << 20 // where the collector works harder
	hardMemory = 512 << 20 // beyond what the process has when it starts
)

// Self confines the calling process for good. It must be root in mount, pid, ipc and
// uts namespaces of its own, with an empty capability bounding set and no environment.
// Of its descriptors 0 to 4 stay open. The process ends when its parent does.
func Self() error {
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"descriptors", descriptors}, {"namespaces", namespaces}, {"limits", limits}, {"root", emptyRoot},
		{"user", user}, {"death", dieWithParent}, {"dump", notDumpable}, {"capabilities", without}, {"calls", filter},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("cannot confine the gateway (%s): %w", step.name, err)
		}
	}
	return nil
}

// descriptors closes what was let through: what is not handed on by intent and not the
// runtime's.
func descriptors() error {
	if len(os.Environ()) > 0 {
		return errors.New("there is an environment")
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
			continue // the folder itself, closed by now
		}
		if err != nil || !strings.HasPrefix(to, "anon_inode:[event") {
			_ = unix.Close(fd)
		}
	}
	return nil
}

// namespaces refuses to take away the mounts of the host's.
func namespaces() error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("process %d is not the first of its namespace", pid)
	}
	return nil
}

func limits() error {
	has, err := dataSize()
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(softMemory)
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_NPROC, maxThreads}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 0},
		{unix.RLIMIT_MEMLOCK, 0}, {unix.RLIMIT_MSGQUEUE, 0}, {unix.RLIMIT_DATA, has + hardMemory},
	} {
		// syscall's, not unix's: os.StartProcess would undo unix's for files.
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return fmt.Errorf("limit %d: %w", l.resource, err)
		}
	}
	return nil
}

// dataSize is what counts against RLIMIT_DATA by now.
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
	// Any folder will do: it is covered.
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
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil { // the old root, which lies on top
		return err
	}
	return unix.Chdir("/")
}

// user becomes ID in all threads, which takes their capabilities.
func user() error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(ID, ID, ID); err != nil {
		return err
	}
	return syscall.Setresuid(ID, ID, ID)
}

// dieWithParent renews what the change of user has undone. The setting is a thread's,
// so the thread is kept: the calling goroutine should live as long as the process.
func dieWithParent() error {
	runtime.LockOSThread()
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

func notDumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// without checks that no capability is left, nor one to gain.
func without() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for _, d := range data {
		if d.Effective != 0 || d.Permitted != 0 {
			return fmt.Errorf("%x are left", d.Permitted)
		}
	}
	for c := uintptr(0); ; c++ {
		left, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			return nil // past the last that this kernel knows
		}
		if left != 0 {
			return fmt.Errorf("%d can be gained", c)
		}
	}
}
