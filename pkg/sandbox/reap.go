// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A fumehood that is killed with SIGKILL takes its sandbox with it, but cannot
// remove its folders and its cgroup. It leaves a note of them, and the next one
// does it, once it is sure that the writer of the note is gone.

// An owner is such a note, at runscRoot/owner.
type owner struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // of the process, in clock ticks since boot: a pid alone is used again
	ID    string `json:"id"`    // of the sandbox and its cgroup
	Dir   string `json:"dir"`   // the sandbox's folder
}

const ownerFile = "owner"

func (s *instance) leaveNote() error {
	data, err := json.Marshal(owner{os.Getpid(), processStart(os.Getpid()), s.id, s.dir})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.runscRoot, ownerFile), data, 0o600)
}

// processStart returns the time of start of a process, or "" when there is none.
func processStart(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// Field 22; the second field is in parentheses and may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// reap removes what fumehoods that are gone left behind. What cannot be removed
// stays for the next; nothing here keeps a run from starting.
func reap() {
	notes, err := filepath.Glob("/run/fumehood-*/" + ownerFile)
	if err != nil {
		return
	}
	for _, note := range notes {
		if o, ok := readNote(note); ok && processStart(o.PID) != o.Start {
			o.remove(filepath.Dir(note))
		}
	}
}

// readNote reads a note that root alone could have written.
func readNote(path string) (owner, bool) {
	var o owner
	var st unix.Stat_t
	if unix.Lstat(filepath.Dir(path), &st) != nil || st.Uid != 0 || st.Mode&0o077 != 0 {
		return o, false
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &o) != nil {
		return o, false
	}
	plain := len(o.ID) == 16 && strings.Trim(o.ID, "0123456789abcdef") == ""
	return o, plain && strings.HasPrefix(filepath.Base(o.Dir), "fumehood-") && filepath.IsAbs(o.Dir)
}

func (o owner) remove(runscRoot string) {
	dirs, _ := filepath.Glob(cgroupMount + "/*/fumehood-" + o.ID)
	for _, dir := range append(dirs, filepath.Join(cgroupMount, "fumehood-"+o.ID)) {
		_ = unix.Rmdir(dir) // fails, as it should, while a process is in it
	}
	_ = os.RemoveAll(o.Dir)
	_ = os.RemoveAll(runscRoot)
}
