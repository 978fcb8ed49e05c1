// SPDX-License-Identifier: Apache-2.0

// Package calls lists the system calls that the monitor observes: what each does, and
// which arguments name its object. The supervisor makes gVisor report their exits,
// and the sink in gVisor's kernel interprets them by this table.
//
// It does not list calls above 441, which gVisor cannot report (fchmodat2 is one),
// nor mappings: a file opened for writing has been reported before its mapping is
// written to.
package calls

import "golang.org/x/sys/unix"

// A Class is the kind of effect that a call has.
type Class uint8

// The classes.
const (
	Open      Class = iota + 1 // Dir, Path; Flags holds the flags
	Make                       // creates the name Dir, Path
	Remove                     // Dir, Path
	Rename                     // Dir, Path to ToDir, To
	Link                       // creates ToDir, To for Dir, Path
	Symlink                    // creates Dir, Path with the text To
	Mode                       // of Dir, Path; with Path < 0 of the descriptor Dir
	Connect                    // descriptor, address, length
	Bind                       // the same
	Listen                     // descriptor
	SendTo                     // descriptor, …, address at 4, length at 5
	SendMsg                    // descriptor, msghdr at 1
	SendMMsg                   // descriptor, mmsghdrs at 1, their count in the result
	Privilege                  // attempts are reported, even failed ones
	Write                      // the result is a number of bytes
)

// None marks an argument that a call does not have: the directory is the current one,
// or no path is given.
const None = -1

// A Call is a system call. Dir, Path, ToDir, To and Flags are argument indexes.
type Call struct {
	Name  string
	Class Class

	Dir, Path, ToDir, To, Flags int
}

func pathCall(class Class, name string, dir, path int) Call {
	return Call{Name: name, Class: class, Dir: dir, Path: path, ToDir: None, To: None, Flags: None}
}

func twoPathCall(class Class, name string, dir, path, toDir, to int) Call {
	return Call{Name: name, Class: class, Dir: dir, Path: path, ToDir: toDir, To: to, Flags: None}
}

func openCall(name string, dir, path, flags int) Call {
	return Call{Name: name, Class: Open, Dir: dir, Path: path, ToDir: None, To: None, Flags: flags}
}

func plainCall(class Class, name string) Call { return pathCall(class, name, None, None) }

// Table has every listed call of this architecture, by number.
var Table = buildTable()

func buildTable() map[uint64]Call {
	t := map[uint64]Call{
		unix.SYS_OPENAT:  openCall("openat", 0, 1, 2),
		unix.SYS_OPENAT2: openCall("openat2", 0, 1, None),

		unix.SYS_MKDIRAT:   pathCall(Make, "mkdirat", 0, 1),
		unix.SYS_MKNODAT:   pathCall(Make, "mknodat", 0, 1),
		unix.SYS_UNLINKAT:  pathCall(Remove, "unlinkat", 0, 1),
		unix.SYS_RENAMEAT2: twoPathCall(Rename, "renameat2", 0, 1, 2, 3),
		unix.SYS_LINKAT:    twoPathCall(Link, "linkat", 0, 1, 2, 3),
		unix.SYS_SYMLINKAT: twoPathCall(Symlink, "symlinkat", 1, 2, None, 0),
		unix.SYS_FCHMODAT:  pathCall(Mode, "fchmodat", 0, 1),
		unix.SYS_FCHMOD:    pathCall(Mode, "fchmod", 0, None),
		unix.SYS_FCHOWNAT:  pathCall(Mode, "fchownat", 0, 1),
		unix.SYS_FCHOWN:    pathCall(Mode, "fchown", 0, None),

		unix.SYS_CONNECT:  plainCall(Connect, "connect"),
		unix.SYS_BIND:     plainCall(Bind, "bind"),
		unix.SYS_LISTEN:   plainCall(Listen, "listen"),
		unix.SYS_SENDTO:   plainCall(SendTo, "sendto"),
		unix.SYS_SENDMSG:  plainCall(SendMsg, "sendmsg"),
		unix.SYS_SENDMMSG: plainCall(SendMMsg, "sendmmsg"),
	}
	for sysno, name := range writes {
		t[sysno] = plainCall(Write, name)
	}
	for sysno, name := range privileges {
		t[sysno] = plainCall(Privilege, name)
	}
	for sysno, call := range archTable {
		t[sysno] = call
	}
	return t
}

var writes = map[uint64]string{
	unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite64", unix.SYS_WRITEV: "writev", unix.SYS_PWRITEV: "pwritev",
	unix.SYS_PWRITEV2: "pwritev2", unix.SYS_SENDFILE: "sendfile", unix.SYS_SPLICE: "splice",
	unix.SYS_COPY_FILE_RANGE: "copy_file_range",
}

var privileges = map[uint64]string{
	unix.SYS_SETUID: "setuid", unix.SYS_SETGID: "setgid", unix.SYS_SETREUID: "setreuid", unix.SYS_SETREGID: "setregid",
	unix.SYS_SETRESUID: "setresuid", unix.SYS_SETRESGID: "setresgid", unix.SYS_SETGROUPS: "setgroups",
	unix.SYS_SETFSUID: "setfsuid", unix.SYS_SETFSGID: "setfsgid", unix.SYS_CAPSET: "capset",
	unix.SYS_CHROOT: "chroot", unix.SYS_PTRACE: "ptrace", unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2",
	unix.SYS_PIVOT_ROOT: "pivot_root",
	unix.SYS_UNSHARE:    "unshare", unix.SYS_SETNS: "setns",
	unix.SYS_OPEN_TREE: "open_tree", unix.SYS_MOVE_MOUNT: "move_mount", unix.SYS_FSOPEN: "fsopen",
	unix.SYS_FSCONFIG: "fsconfig",
	unix.SYS_FSMOUNT:  "fsmount", unix.SYS_FSPICK: "fspick",
	unix.SYS_PROCESS_VM_READV: "process_vm_readv", unix.SYS_PROCESS_VM_WRITEV: "process_vm_writev",
	unix.SYS_PERF_EVENT_OPEN: "perf_event_open", unix.SYS_BPF: "bpf", unix.SYS_IO_URING_SETUP: "io_uring_setup",
	unix.SYS_KEYCTL: "keyctl", unix.SYS_ADD_KEY: "add_key", unix.SYS_INIT_MODULE: "init_module",
	unix.SYS_FINIT_MODULE: "finit_module",
	unix.SYS_KEXEC_LOAD:   "kexec_load", unix.SYS_OPEN_BY_HANDLE_AT: "open_by_handle_at",
	unix.SYS_MEMFD_CREATE: "memfd_create",
	unix.SYS_USERFAULTFD:  "userfaultfd", unix.SYS_REBOOT: "reboot", unix.SYS_SWAPON: "swapon", unix.SYS_ACCT: "acct",
	unix.SYS_SETHOSTNAME: "sethostname", unix.SYS_CLOCK_SETTIME: "clock_settime", unix.SYS_SETTIMEOFDAY: "settimeofday",
}
