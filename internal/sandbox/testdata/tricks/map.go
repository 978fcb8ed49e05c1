// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readable   = unix.PROT_READ
	executable = unix.PROT_READ | unix.PROT_EXEC
	page       = 4096
)

// ways make a file of at least two pages executable memory. The last ones need no file.
var ways = map[string]func(name string) error{
	"exec":      func(name string) error { return mapped(opened(name), executable, unix.MAP_PRIVATE) },
	"shared":    func(name string) error { return mapped(opened(name), executable, unix.MAP_SHARED) },
	"writable":  func(name string) error { return mapped(opened(name), executable|unix.PROT_WRITE, unix.MAP_PRIVATE) },
	"exec only": func(name string) error { return mapped(opened(name), unix.PROT_EXEC, unix.MAP_PRIVATE) },
	"locked": func(name string) error {
		return mapped(opened(name), executable, unix.MAP_PRIVATE|unix.MAP_LOCKED|unix.MAP_POPULATE)
	},
	"offset": func(name string) error {
		_, err := memory(opened(name), executable, unix.MAP_PRIVATE, page)
		return err
	},
	"protect": func(name string) error {
		return protected(opened(name), readable, unix.MAP_PRIVATE, nil)
	},
	"protect a part": func(name string) error {
		at, err := memory(opened(name), readable, unix.MAP_PRIVATE, 0)
		if err != nil {
			return err
		}
		return protect(at+page, page)
	},
	"protect nothing": func(name string) error { return protected(opened(name), unix.PROT_NONE, unix.MAP_PRIVATE, nil) },
	"write and protect": func(name string) error {
		return protected(opened(name), readable|unix.PROT_WRITE, unix.MAP_PRIVATE, func(at uintptr) (uintptr, error) {
			*(*byte)(pointer(at)) = 0xc3
			return at, nil
		})
	},
	"write shared and protect": func(name string) error {
		fd, err := unix.Open(name, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		return protected(fd, readable|unix.PROT_WRITE, unix.MAP_SHARED, nil)
	},
	"move and protect": func(name string) error {
		return protected(opened(name), readable, unix.MAP_PRIVATE, func(at uintptr) (uintptr, error) {
			return call(unix.SYS_MREMAP, at, 2*page, 4*page, unix.MREMAP_MAYMOVE, 0, 0)
		})
	},
	"copy and protect": func(name string) error { // a shared mapping, by a length of zero
		return protected(opened(name), readable, unix.MAP_SHARED, func(at uintptr) (uintptr, error) {
			return call(unix.SYS_MREMAP, at, 0, 2*page, unix.MREMAP_MAYMOVE, 0, 0)
		})
	},
	"protect in a fork": func(name string) error {
		at, err := memory(opened(name), readable, unix.MAP_PRIVATE, 0)
		if err != nil {
			return err
		}
		return forked(at)
	},
	"replace code": func(name string) error { // of memory that is executable
		at, err := call(unix.SYS_MMAP, 0, 2*page, executable, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
		if err != nil {
			return err
		}
		_, err = call(unix.SYS_MMAP, at, 2*page, executable, unix.MAP_PRIVATE|unix.MAP_FIXED, uintptr(opened(name)), 0)
		return err
	},
	"read implies exec": func(name string) error {
		if _, err := call(unix.SYS_PERSONALITY, 0x0400000, 0, 0, 0, 0, 0); err != nil {
			return err
		}
		if err := mapped(opened(name), readable, unix.MAP_PRIVATE); err != nil {
			return err
		}
		return errors.New("only readable")
	},
	"remap pages": func(name string) error {
		at, err := memory(opened(name), readable, unix.MAP_SHARED, 0)
		if err != nil {
			return err
		}
		_, err = call(unix.SYS_REMAP_FILE_PAGES, at, page, unix.PROT_EXEC, 1, 0, 0)
		return err
	},
	"key": func(name string) error {
		at, err := memory(opened(name), readable, unix.MAP_PRIVATE, 0)
		if err != nil {
			return err
		}
		_, err = call(unix.SYS_PKEY_MPROTECT, at, 2*page, executable, ^uintptr(0), 0, 0)
		return err
	},
	"memfd": func(name string) error {
		fd, err := unix.MemfdCreate("x", unix.MFD_ALLOW_SEALING)
		if err != nil {
			return err
		}
		if _, err := unix.Write(fd, content(name)); err != nil {
			return err
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != nil {
			return err
		}
		return mapped(fd, executable, unix.MAP_SHARED)
	},
	"no name": func(name string) error {
		fd, err := unix.Open("/workspace", unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		if _, err := unix.Write(fd, content(name)); err != nil {
			return err
		}
		return mapped(fd, executable, unix.MAP_PRIVATE)
	},
	"deleted": func(name string) error {
		if err := os.WriteFile("/tmp/deleted", content(name), 0o600); err != nil {
			return err
		}
		fd := opened("/tmp/deleted")
		if err := os.Remove("/tmp/deleted"); err != nil {
			return err
		}
		return mapped(fd, executable, unix.MAP_PRIVATE)
	},
	"by descriptor": func(name string) error {
		return mapped(opened("/proc/self/fd/"+strconv.Itoa(opened(name))), executable, unix.MAP_PRIVATE)
	},
	"by root":         func(name string) error { return mapped(opened("/proc/self/root"+name), executable, unix.MAP_PRIVATE) },
	"own mounts":      func(name string) error { return inNamespace("bind", name) },
	"own file system": func(name string) error { return inNamespace("own", name) },
	"own root":        func(name string) error { return inNamespace("chroot", name) },
	"exchanged":       exchanged,
	"segment": func(name string) error {
		id, err := segment(name)
		if err != nil {
			return err
		}
		_, err = call(unix.SYS_SHMAT, id, 0, 0o100000, 0, 0, 0)
		return err
	},
	"segment and protect": func(name string) error {
		id, err := segment(name)
		if err != nil {
			return err
		}
		at, err := call(unix.SYS_SHMAT, id, 0, 0, 0, 0, 0)
		if err != nil {
			return err
		}
		return protect(at, 2*page)
	},
	"uselib": func(name string) error {
		if runtime.GOARCH != "amd64" {
			return unix.ENOSYS // as there
		}
		path, _ := unix.BytePtrFromString(name)
		_, err := call(134, uintptr(unsafe.Pointer(path)), 0, 0, 0, 0, 0)
		return err
	},

	"memory": func(string) error {
		_, err := call(unix.SYS_MMAP, 0, 2*page, executable|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS,
			^uintptr(0), 0)
		return err
	},
	"shared memory": func(string) error {
		at, err := call(unix.SYS_MMAP, 0, 2*page, readable|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS,
			^uintptr(0), 0)
		if err != nil {
			return err
		}
		return protect(at, 2*page)
	},
	"zeros": func(string) error { return protected(opened("/dev/zero"), readable, unix.MAP_PRIVATE, nil) },
	"shared zeros": func(string) error {
		fd, err := unix.Open("/dev/zero", unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		return protected(fd, readable|unix.PROT_WRITE, unix.MAP_SHARED, nil)
	},
}

// load maps a file as code in one way, and prints what came of it.
func load(args []string) error {
	if err := ways[args[0]](args[1]); err != nil {
		return err
	}
	fmt.Println("CANARY")
	return nil
}

func call(number uintptr, args ...uintptr) (uintptr, error) {
	result, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return 0, errno
	}
	return result, nil
}

// pointer is the pointer to memory that is not Go's.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

func opened(name string) int {
	fd, err := unix.Open(name, unix.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	return fd
}

func memory(fd, prot, flags int, offset uintptr) (uintptr, error) {
	return call(unix.SYS_MMAP, 0, 2*page, uintptr(prot), uintptr(flags), uintptr(fd), offset)
}

func mapped(fd, prot, flags int) error {
	_, err := memory(fd, prot, flags, 0)
	return err
}

func protect(at, length uintptr) error {
	_, err := call(unix.SYS_MPROTECT, at, length, executable, 0, 0, 0)
	return err
}

// protected makes a mapping executable after change.
func protected(fd, prot, flags int, change func(uintptr) (uintptr, error)) error {
	at, err := memory(fd, prot, flags, 0)
	if err == nil && change != nil {
		at, err = change(at)
	}
	if err != nil {
		return err
	}
	return protect(at, 2*page)
}

// forked makes memory executable in a copy of the process.
func forked(at uintptr) error {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, errno := syscall.RawSyscall(unix.SYS_MPROTECT, at, 2*page, executable)
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(int(pid), &status, 0, nil); err != nil {
		return err
	}
	if status.ExitStatus() != 0 {
		return syscall.Errno(status.ExitStatus())
	}
	return nil
}

func segment(name string) (uintptr, error) {
	id, err := call(unix.SYS_SHMGET, 0, 2*page, 0o1700, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	at, err := call(unix.SYS_SHMAT, id, 0, 0, 0, 0, 0)
	if err != nil {
		return 0, err
	}
	copy(unsafe.Slice((*byte)(pointer(at)), 2*page), content(name))
	_, err = call(unix.SYS_SHMDT, at, 0, 0, 0, 0, 0)
	return id, err
}

// exchanged replaces the file behind a descriptor while it is mapped.
func exchanged(name string) error {
	wanted, allowed := opened(name), opened("/usr/bin/env")
	fd, err := unix.Dup(allowed)
	if err != nil {
		return err
	}
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			_ = unix.Dup2(wanted, fd)
			_ = unix.Dup2(allowed, fd)
		}
	}()
	last := errors.New("it was never exchanged in time")
	for range 2000 {
		at, err := memory(fd, executable, unix.MAP_PRIVATE, 0)
		if err != nil {
			last = err
			continue
		}
		found := *(*[page]byte)(pointer(at))
		if _, err := call(unix.SYS_MUNMAP, at, 2*page, 0, 0, 0, 0); err != nil {
			return err
		}
		if found == [page]byte(content(name)[:page]) {
			return nil
		}
	}
	return last
}

// inNamespace maps the file in a user namespace, where it is under another name.
func inNamespace(how, name string) error {
	who, err := user.Current()
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", "inside", how, name)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}}
	out, err := cmd.Output()
	fmt.Print(string(out))
	if err != nil {
		return err
	}
	return nil
}

func inside(args []string) error {
	how, name := args[0], args[1]
	data := content(name)
	switch how {
	case "bind":
		if err := unix.Mount(name, "/usr/bin/env", "", unix.MS_BIND, ""); err != nil {
			return err
		}
		name = "/usr/bin/env"
	case "own":
		if err := unix.Mount("none", "/usr", "tmpfs", 0, ""); err != nil {
			return err
		}
		if err := os.WriteFile("/usr/x", data, 0o755); err != nil {
			return err
		}
		name = "/usr/x"
	case "chroot":
		if err := unix.Chroot("/workspace"); err != nil {
			return err
		}
		name = "/file"
	}
	return mapped(opened(name), executable, unix.MAP_PRIVATE)
}

// overwrite changes a file by a mapping, which does not change its times. With another argument it keeps the mapping.
func overwrite(args []string) error {
	fd, err := unix.Open(args[0], unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	at, err := memory(fd, readable|unix.PROT_WRITE, unix.MAP_SHARED, 0)
	if err != nil {
		return err
	}
	*(*byte)(pointer(at + page)) ^= 1
	if len(args) > 1 {
		fmt.Println("mapped")
		time.Sleep(time.Hour)
	}
	return nil
}
