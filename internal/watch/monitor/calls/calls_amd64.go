// SPDX-License-Identifier: Apache-2.0

package calls

import "golang.org/x/sys/unix"

var archTable = map[uint64]Call{
	unix.SYS_OPEN:     openCall("open", None, 0, 1),
	unix.SYS_CREAT:    openCall("creat", None, 0, None),
	unix.SYS_MKDIR:    pathCall(Make, "mkdir", None, 0),
	unix.SYS_MKNOD:    pathCall(Make, "mknod", None, 0),
	unix.SYS_UNLINK:   pathCall(Remove, "unlink", None, 0),
	unix.SYS_RMDIR:    pathCall(Remove, "rmdir", None, 0),
	unix.SYS_RENAME:   twoPathCall(Rename, "rename", None, 0, None, 1),
	unix.SYS_RENAMEAT: twoPathCall(Rename, "renameat", 0, 1, 2, 3),
	unix.SYS_LINK:     twoPathCall(Link, "link", None, 0, None, 1),
	unix.SYS_SYMLINK:  twoPathCall(Symlink, "symlink", None, 1, None, 0),
	unix.SYS_CHMOD:    pathCall(Mode, "chmod", None, 0),
	unix.SYS_CHOWN:    pathCall(Mode, "chown", None, 0),
	unix.SYS_LCHOWN:   pathCall(Mode, "lchown", None, 0),

	unix.SYS_IOPL:   plainCall(Privilege, "iopl"),
	unix.SYS_IOPERM: plainCall(Privilege, "ioperm"),
}
