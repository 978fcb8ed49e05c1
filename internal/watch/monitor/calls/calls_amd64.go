// SPDX-License-Identifier: Apache-2.0

package calls

import "golang.org/x/sys/unix"

var archTable = map[uint64]Call{
	unix.SYS_OPEN:     open("open", None, 0, 1),
	unix.SYS_CREAT:    open("creat", None, 0, None),
	unix.SYS_MKDIR:    at(Make, "mkdir", None, 0),
	unix.SYS_MKNOD:    at(Make, "mknod", None, 0),
	unix.SYS_UNLINK:   at(Remove, "unlink", None, 0),
	unix.SYS_RMDIR:    at(Remove, "rmdir", None, 0),
	unix.SYS_RENAME:   two(Rename, "rename", None, 0, None, 1),
	unix.SYS_RENAMEAT: two(Rename, "renameat", 0, 1, 2, 3),
	unix.SYS_LINK:     two(Link, "link", None, 0, None, 1),
	unix.SYS_SYMLINK:  two(Symlink, "symlink", None, 1, None, 0),
	unix.SYS_CHMOD:    at(Mode, "chmod", None, 0),
	unix.SYS_CHOWN:    at(Mode, "chown", None, 0),
	unix.SYS_LCHOWN:   at(Mode, "lchown", None, 0),

	unix.SYS_IOPL:   plain(Privilege, "iopl"),
	unix.SYS_IOPERM: plain(Privilege, "ioperm"),
}
