// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// trustedOwners returns the users that may own what is shown.
func (s Search) trustedOwners() []int {
	list := append([]int{0, os.Geteuid()}, s.Owners...)
	if uid, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && os.Geteuid() == 0 {
		list = append(list, uid)
	}
	return list
}

func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// privateGroup reports whether the owner of a file is the only member of its group:
// many distributions give every user such a group, and a umask that lets it write.
func privateGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	uid, gid, owner := strconv.Itoa(int(stat.Uid)), strconv.Itoa(int(stat.Gid)), ""
	for _, user := range readDatabase("/etc/passwd", 7) {
		if user[3] != gid {
			continue
		}
		if user[2] != uid {
			return false
		}
		owner = user[0]
	}
	return owner != "" && !slices.ContainsFunc(groupMembers(gid), func(name string) bool { return name != owner })
}

// groupMembers returns the users whom /etc/group adds to a group.
func groupMembers(gid string) []string {
	for _, group := range readDatabase("/etc/group", 4) {
		if group[2] == gid && group[3] != "" {
			return strings.Split(group[3], ",")
		}
	}
	return nil
}

// homeDirs returns the home directories of people and of this process.
func homeDirs() []string {
	list := []string{"/root"}
	if home := os.Getenv("HOME"); len(home) > 1 {
		list = append(list, strings.TrimSuffix(home, "/"))
	}
	for _, user := range readDatabase("/etc/passwd", 7) {
		if uid, err := strconv.Atoi(user[2]); err == nil && uid >= 1000 && len(user[5]) > 1 {
			list = append(list, strings.TrimSuffix(user[5], "/"))
		}
	}
	return list
}

// readDatabase returns the lines of a file such as /etc/passwd that have n fields.
func readDatabase(path string, n int) (lines [][]string) {
	data, _ := os.ReadFile(path)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(strings.TrimSuffix(line, "\n"), ":"); len(fields) == n {
			lines = append(lines, fields)
		}
	}
	return lines
}
