// SPDX-License-Identifier: Apache-2.0

package calls

import "testing"

// gVisor refuses a session with an unknown point, and it has no points above 441.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for sysno, call := range Table {
		if sysno > 441 || call.Class == 0 || call.Name == "" || names[call.Name] {
			t.Errorf("%d is %+v", sysno, call)
		}
		names[call.Name] = true
		for _, arg := range []int{call.Dir, call.Path, call.ToDir, call.To, call.Flags} {
			if arg < None || arg > 5 {
				t.Errorf("%s: argument %d", call.Name, arg)
			}
		}
	}
	for _, name := range []string{"openat", "renameat2", "connect", "unshare", "setns", "memfd_create", "io_uring_setup"} {
		if !names[name] {
			t.Errorf("%s is not looked at", name)
		}
	}
}
