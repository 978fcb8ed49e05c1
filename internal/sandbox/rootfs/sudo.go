// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CallerPath returns the PATH of the person who started this process. sudo replaces PATH by one
// of its own (secure_path), in which no tool of a home directory is found. If sudo started this
// process and its PATH has only directories of the system, the result is the PATH with which sudo
// itself was started, followed by this process's. A PATH that was set after that, as by
// sudo env PATH=…, is the result alone.
//
// The result is for Search, which decides what is shown.
func CallerPath() string {
	own := os.Getenv("PATH")
	if os.Getenv("SUDO_UID") == "" || os.Geteuid() != 0 || !isSystemPath(own) {
		return own
	}
	return joinPath(sudoPath("/proc", os.Getppid()), own)
}

// isSystemPath reports whether path has only directories that sudo's secure_path has by default.
func isSystemPath(path string) bool {
	return !slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		return !slices.Contains([]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
			"/snap/bin"}, dir)
	})
}

func joinPath(first, then string) string {
	if first == "" {
		return then
	}
	return strings.Join(removeDuplicates(append(filepath.SplitList(first), filepath.SplitList(then)...)),
		string(filepath.ListSeparator))
}

const (
	maxAncestors   = 32
	maxEnvironment = 2 << 20 // of a process, in bytes
)

// sudoPath returns the PATH in the environment of the nearest sudo among the process pid and those
// above it, or "". proc is the mount of the proc file system.
func sudoPath(proc string, pid int) string {
	for range maxAncestors {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if program, err := os.Readlink(filepath.Join(dir, "exe")); err == nil &&
			strings.HasPrefix(filepath.Base(program), "sudo") {
			return readVariable(filepath.Join(dir, "environ"), "PATH=")
		}
		if pid = readParent(filepath.Join(dir, "stat")); pid <= 1 {
			return ""
		}
	}
	return ""
}

// readVariable returns the value of a variable in a process's environ file; name ends with "=".
func readVariable(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEnvironment))
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if value, found := bytes.CutPrefix(entry, []byte(name)); found {
			return string(value)
		}
	}
	return ""
}

// readParent returns the parent in a process's stat file, or 0. The name of the program, in
// parentheses, may contain anything.
func readParent(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pid
}
