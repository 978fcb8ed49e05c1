// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A launcher starts runsc from a separate thread, because four things that runsc
// must inherit belong to a thread: the v1 cgroups (entering them takes 10–20 ms,
// which is off the critical path here), a private mount namespace for the read-only
// view of the workspace, no_new_privs, and the parent-death signal, which fires
// when the *thread* that forked dies, not the process.
//
// The thread lives exactly as long as the sandbox.
type launcher struct {
	ready chan error     // one value: the thread is prepared
	start chan *exec.Cmd // the process to start, once
	begun chan error     // one value: the process was started
	end   chan struct{}  // closed: release the thread
	gone  chan struct{}  // closed: the thread has ended
}

// newLauncher starts to prepare the thread; errors are returned by the first
// launch.
func newLauncher(prepare func() error) *launcher {
	l := &launcher{
		ready: make(chan error, 1), start: make(chan *exec.Cmd), begun: make(chan error, 1),
		end: make(chan struct{}), gone: make(chan struct{}),
	}
	go l.runThread(prepare)
	return l
}

func (l *launcher) runThread(prepare func() error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The main thread cannot end: it would stay in the cgroup. Lock it, so that
		// the next goroutine gets another thread.
		done := make(chan struct{})
		go func() { defer close(done); l.runThread(prepare) }()
		<-done
		runtime.UnlockOSThread()
		return
	}
	defer close(l.gone) // because the thread is locked, it ends with this goroutine
	l.ready <- prepare()
	select {
	case cmd := <-l.start:
		l.begun <- cmd.Start()
	case <-l.end:
		return
	}
	<-l.end
}

// launchCommand starts cmd from the prepared thread.
func (l *launcher) launchCommand(cmd *exec.Cmd) error {
	if err := <-l.ready; err != nil {
		return err
	}
	l.start <- cmd
	return <-l.begun
}

func (l *launcher) close() {
	close(l.end)
	<-l.gone
}

// A treeView gives the sandbox the host's trees: as read-only mounts in a mount
// namespace that only the launcher's thread and its children see. So not even
// runsc's own processes have a writable path to the workspace.
type treeView struct {
	trees []Bind // Target is the mount's path on the host
	dir   string // the mounts are made at dir/0, dir/1 …
	idmap *idMap // nil if users are not mapped
}

func (v treeView) mountPath(i int) string { return filepath.Join(v.dir, strconv.Itoa(i)) }

// enterNamespace makes the view in the calling thread.
func (v treeView) enterNamespace() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("cannot make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	users, err := v.idmap.waitForNamespace()
	if err != nil {
		return err
	}
	for _, t := range v.trees {
		if err := mountReadOnly(t.Source, t.Target, users); err != nil {
			return err
		}
	}
	return nil
}

// mountReadOnly mounts source read-only at target, with the users of a namespace if there is
// one. Mounts below source are not included, so a mount inside the workspace cannot leak in.
func mountReadOnly(source, target string, users *os.File) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, source,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("cannot open tree %q: %v", source, err)
	}
	defer unix.Close(fd)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if users != nil {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(users.Fd())
	}
	switch err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); {
	case err == unix.EINVAL && users != nil: // as overlayfs, on which a container's root is
		return newStopError("sandbox.start",
			fmt.Sprintf("cannot start the sandbox: cannot mount %q: its file system does not support ID-mapped mounts",
				source),
			"put it on a volume or another disk", nil)
	case err != nil:
		return fmt.Errorf("cannot make tree %q read-only: %v", source, err)
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("cannot mount tree %q: %v", source, err)
	}
	return nil
}

// An idMap is an identityMap that is made in the background.
type idMap struct {
	done  chan struct{}
	users *os.File
	err   error
}

func newIDMap() *idMap {
	m := &idMap{done: make(chan struct{})}
	go func() { defer close(m.done); m.users, m.err = identityMap() }()
	return m
}

// waitForNamespace returns the user namespace when it is made; nil for a nil idMap.
func (m *idMap) waitForNamespace() (*os.File, error) {
	if m == nil {
		return nil, nil
	}
	<-m.done
	return m.users, m.err
}

func (m *idMap) close() error {
	if users, _ := m.waitForNamespace(); users != nil {
		return users.Close()
	}
	return nil // launch has returned the error
}

// identityMap returns a user namespace that maps root's files to guestID and vice
// versa. A workspace that root checked out is thus writable for the unprivileged
// user inside, without any change to it.
func identityMap() (*os.File, error) {
	maps := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: guestID, Size: 1},
		{ContainerID: 1, HostID: 1, Size: guestID - 1},
		{ContainerID: guestID, HostID: 0, Size: 1},
		{ContainerID: guestID + 1, HostID: guestID + 1, Size: 1 << 30},
	}
	// The child only keeps the namespace open until we have opened it.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	cmd := exec.Command("/bin/cat")
	cmd.Env = []string{}
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: maps, GidMappings: maps}
	err = cmd.Start()
	read.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot make a user namespace: %v", err)
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	write.Close()
	_ = cmd.Wait()
	return f, err
}
