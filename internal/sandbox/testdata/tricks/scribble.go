// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A scribbler changes files in many ways.
type scribbler struct {
	*rand.Rand
	files []*os.File // that stay open, also when they have no name any more
	maps  [][]byte
}

// scribble changes files below the working directory: so many times, or with "forever" until it is killed.
// It prints a line when it has begun.
func scribble(args []string) error {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return err
	}
	s := &scribbler{Rand: rand.New(rand.NewPCG(seed, 0))}
	if args[1] == "forever" {
		for i := 0; ; i++ {
			s.change()
			if i == 50 {
				fmt.Println("scribbling")
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
	times, err := strconv.Atoi(args[1])
	for range times {
		s.change()
	}
	return err
}

// name is one of a few, in a tree of three floors.
func (s *scribbler) name() string {
	name := ""
	for range 1 + s.IntN(3) {
		name = filepath.Join(name, string(rune('a'+s.IntN(4))))
	}
	return name
}

// change does one thing. That it cannot be done does not matter.
func (s *scribbler) change() {
	name, other := s.name(), s.name()
	switch s.IntN(20) {
	case 0, 1:
		if fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK, 0o644); err == nil {
			_, _ = unix.Write(fd, make([]byte, s.IntN(9000)))
			_ = unix.Close(fd)
		}
	case 2, 3:
		_ = os.MkdirAll(name, 0o755)
	case 4:
		if _, err := os.Lstat(name); err == nil { // else a FIFO may be in the way, which RemoveAll would open
			_ = os.RemoveAll(name)
		}
	case 5:
		_ = os.Rename(name, other)
	case 6:
		_ = unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, other, unix.RENAME_NOREPLACE)
	case 7:
		_ = os.Link(name, other)
	case 8:
		_ = os.Symlink("../"+other, name)
	case 9:
		_ = unix.Mkfifo(name, 0o600)
		_ = unix.Mknod(other, unix.S_IFSOCK|0o600, 0)
	case 10:
		_ = os.Chmod(name, os.FileMode(0o700+s.IntN(0o100)))
		_ = unix.Setxattr(other, "user.x", []byte{byte(s.IntN(256))}, 0)
	case 11:
		_ = os.Truncate(name, s.Int64N(9000))
	case 12:
		s.keepOpen(name)
	case 13, 14:
		s.writeOpen()
	case 15:
		s.sameAgain(name)
	case 16:
		s.linkUnnamed(name)
	case 17:
		s.copyRange(name, other)
	case 18:
		_ = os.Chtimes(name, time.Unix(s.Int64N(2), 0), time.Unix(s.Int64N(2), 0))
	case 19:
		s.mapShared(name)
	}
}

func (s *scribbler) keepOpen(name string) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return
	}
	if s.files = append(s.files, f); len(s.files) > 20 {
		_ = s.files[0].Close()
		s.files = s.files[1:]
	}
}

// writeOpen writes to a file that was opened before.
func (s *scribbler) writeOpen() {
	if len(s.files) > 0 {
		f := s.files[s.IntN(len(s.files))]
		_, _ = f.WriteAt(make([]byte, s.IntN(100)), s.Int64N(9000))
		_ = unix.Fallocate(int(f.Fd()), 0, 0, s.Int64N(9000))
		_ = f.Chmod(os.FileMode(0o700 + s.IntN(0o100)))
	}
	for _, at := range s.maps {
		s.touch(at)
	}
}

// sameAgain replaces a file by another one of the same size and time.
func (s *scribbler) sameAgain(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || os.Remove(name) != nil {
		return
	}
	_ = os.WriteFile(name, make([]byte, info.Size()), info.Mode())
	_ = os.Chtimes(name, info.ModTime(), info.ModTime())
}

// linkUnnamed names a file that was made without a name, or that has lost it.
func (s *scribbler) linkUnnamed(name string) {
	fd, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if err != nil && len(s.files) > 0 {
		fd, err = unix.Dup(int(s.files[0].Fd()))
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Write(fd, []byte("unnamed"))
	_ = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

func (s *scribbler) copyRange(name, other string) {
	from, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer from.Close()
	to, err := os.OpenFile(other, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return
	}
	defer to.Close()
	_, _ = unix.CopyFileRange(int(from.Fd()), nil, int(to.Fd()), nil, 100, 0)
	_, _ = unix.Sendfile(int(to.Fd()), int(from.Fd()), nil, 100)
}

// touch writes to a mapping. The file may have become empty.
func (s *scribbler) touch(at []byte) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	at[0]++
}

func (s *scribbler) mapShared(name string) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() == 0 || len(s.maps) > 20 {
		return
	}
	at, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		s.maps = append(s.maps, at)
	}
}

// deep makes directories below each other, so many that a path of the last ones is too long.
func deep([]string) error {
	name := strings.Repeat("d", 200)
	for range 30 {
		if err := os.Mkdir(name, 0o755); err != nil {
			return err
		}
		if err := os.Chdir(name); err != nil {
			return err
		}
	}
	return nil
}

// scribbleInside scribbles in namespaces of its own, where other directories are mounted over some of the working
// directory.
func scribbleInside(args []string) error {
	who, err := user.Current()
	if err != nil {
		return err
	}
	id, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", append([]string{"mountandscribble"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}}
	return cmd.Run()
}

func mountAndScribble(args []string) error {
	for _, name := range []string{"a", "b", "c"} {
		if err := errors.Join(os.RemoveAll(name), os.Mkdir(name, 0o755)); err != nil {
			return err
		}
	}
	for _, err := range []error{
		unix.Mount("none", "a", "tmpfs", 0, ""),
		unix.Mount("c", "b", "", unix.MS_BIND, ""),
		unix.Mount("/tmp", "c", "", unix.MS_BIND, ""),
	} {
		if err != nil {
			return err
		}
	}
	return scribble(args)
}
