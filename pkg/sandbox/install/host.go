// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Host is what this machine offers to sandboxes, for doctor. What cannot be read
// is reported as missing.
type Host struct {
	Kernel         string // release, as in uname -r
	Root           bool   // we run as root
	Cgroup         string // "v2", "v1", "hybrid" (v1 with an empty v2) or "none"
	UserNamespaces bool   // the kernel has them and allows at least one
	SeccompNotify  bool   // seccomp can forward system calls to another process
	PtraceScope    string // Yama's: "0" to "3", or "none"; systrap needs less than 3
	MkfsErofs      string // path of mkfs.erofs: images start 3 ms faster than directories
	Go             string // path of the go command, which a first build needs
	CCompiler      string // path of the compiler that would build the prewarmer
}

// ReadHost reads the kernel's settings and PATH; it changes nothing and starts
// nothing.
func ReadHost() Host {
	namespaces, _ := strconv.Atoi(line("/proc/sys/user/max_user_namespaces"))
	h := Host{
		Kernel:         line("/proc/sys/kernel/osrelease"),
		Root:           os.Geteuid() == 0,
		Cgroup:         cgroup(),
		UserNamespaces: namespaces > 0,
		SeccompNotify:  strings.Contains(line("/proc/sys/kernel/seccomp/actions_avail"), "user_notif"),
		PtraceScope:    line("/proc/sys/kernel/yama/ptrace_scope"),
		MkfsErofs:      firstOf("mkfs.erofs"),
		Go:             firstOf("go"),
		CCompiler:      firstOf(compilers...),
	}
	if h.PtraceScope == "" {
		h.PtraceScope = "none"
	}
	return h
}

func cgroup() string {
	switch {
	case exists("/sys/fs/cgroup/cgroup.controllers"):
		return "v2"
	case exists("/sys/fs/cgroup/memory") && exists("/sys/fs/cgroup/unified"):
		return "hybrid"
	case exists("/sys/fs/cgroup/memory"):
		return "v1"
	}
	return "none"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func line(path string) string {
	text, _ := os.ReadFile(path)
	return strings.TrimSpace(string(text))
}

func firstOf(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
