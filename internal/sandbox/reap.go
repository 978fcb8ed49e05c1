// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lease"
)

// When fumehood is killed with SIGKILL, its sandbox ends with it, but its directories and
// its cgroup remain. Each sandbox therefore has a leased directory with a note of what
// else it has on the host. The note is written before any of that is made. The next run
// takes over the abandoned directory and removes what its note lists.

const (
	// rootPrefix is the prefix of the leased directories' names. Earlier versions, which
	// identified abandoned ones by a process id, used other names and ignore these.
	rootPrefix = "fumehood-sandbox-"
	noteFile   = "note.json"
)

// rootParents are where leased directories can be: their paths must be short.
var rootParents = []string{"/run", "/tmp"}

// A sandboxNote lists what a sandbox has on the host outside its leased directory.
type sandboxNote struct {
	ID  string `json:"id"`  // of the sandbox and its cgroup
	Dir string `json:"dir"` // the sandbox's directory
	// Cgroup is the parent of its cgroup, a path under cgroupMount.
	Cgroup string `json:"cgroup,omitempty"`
}

// leaseRoot makes a private directory with a short path.
func leaseRoot() (*lease.Dir, error) {
	var errs []error
	for _, parent := range rootParents {
		d, err := lease.Make(parent, rootPrefix)
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (n sandboxNote) writeNote(root string) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, noteFile), data, 0o600)
}

// removeDeadSandboxes removes what dead fumehood processes left behind. What cannot be removed is left
// to the next run; reap never prevents a run from starting.
func removeDeadSandboxes() {
	for _, parent := range rootParents {
		lease.Sweep(parent, rootPrefix, reapRoot)
	}
}

// reapRoot removes what the note lists and then the leased directory. If something is
// left, the note is kept for the next run.
func reapRoot(d *lease.Dir) error {
	if n, ok := readNote(d); ok {
		if err := n.removeSandbox(); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	return d.Remove()
}

// readNote reads the note in a directory of this user. Without a complete note, nothing
// else was made.
func readNote(d *lease.Dir) (sandboxNote, bool) {
	var n sandboxNote
	data, err := d.ReadFile(noteFile)
	if err != nil || json.Unmarshal(data, &n) != nil {
		return n, false
	}
	plain := len(n.ID) == 16 && strings.Trim(n.ID, "0123456789abcdef") == ""
	plain = plain && filepath.Clean("/"+n.Cgroup) == filepath.Join("/", n.Cgroup) && !strings.Contains(n.Cgroup, "..")
	return n, plain && filepath.Base(n.Dir) == "fumehood-"+n.ID && filepath.IsAbs(n.Dir)
}

// removeSandbox fails while a process is in the cgroup: a killed fumehood's lock is released a
// moment before its sandbox is gone.
func (n sandboxNote) removeSandbox() error {
	top := filepath.Join(cgroupMount, n.Cgroup, "fumehood-"+n.ID)
	dirs := []string{filepath.Join(top, leafName), top}
	for _, controller := range controllers {
		dirs = append(dirs, filepath.Join(cgroupMount, controller, n.Cgroup, "fumehood-"+n.ID))
	}
	for _, dir := range dirs {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT { // the next run retries
			return err
		}
	}
	return os.RemoveAll(n.Dir)
}
