// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox/guest"
)

// prepare makes everything that runsc needs, and starts only the launcher's thread.
func (s *instance) prepare() error {
	if err := s.claim(); err != nil {
		return err
	}
	for _, name := range []string{"bundle", "root", "upper", "trees"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			return err
		}
	}
	go reap()
	var err error
	if s.cgroup, err = newCgroup(cgroupMount, "fumehood-"+s.id); err != nil {
		return noCgroup(err)
	}
	s.onClose(s.cgroup.remove)
	if err := s.limit(s.starting()); err != nil {
		return noLimit(err)
	}
	if s.gate, err = newGate(s); err != nil {
		return err
	}
	if s.watch, err = newWatch(s.dir, s.gate.socket(), s.o.patience, s.trees()); err != nil {
		return err
	}
	s.onClose(s.watch.close)
	v, err := s.view()
	if err != nil {
		return err
	}
	// Entering a v1 cgroup takes 10 ms and more, and the map of users 3 ms; the bundle is made
	// in parallel.
	s.launcher = newLauncher(func() error { return errors.Join(s.cgroup.enter(), v.enter()) })
	s.onClose(func() error { s.launcher.close(); return nil })
	return s.bundle()
}

// starting returns the limits before the first command. gVisor's own start may use every
// processor: the first command would otherwise pay for the start.
func (s *instance) starting() proposal.Limits {
	l := s.o.Limits
	l.CPUs = float64(runtime.NumCPU())
	return l
}

// claim makes the sandbox's directories, after it has written a note of them for
// reap.
func (s *instance) claim() error {
	var err error
	if s.id, err = newID(); err != nil {
		return err
	}
	if s.root, err = leaseRoot(); err != nil {
		return noState(err)
	}
	s.onClose(func() error { return reapRoot(s.root) })
	if s.dir, err = stateDir(s.o, s.id); err != nil {
		return noState(err)
	}
	if err := (note{s.id, s.dir}).write(s.root.Path); err != nil {
		return noState(err)
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return noState(err)
	}
	return nil
}

// stateDir returns the path of the sandbox's private directory, which other processes
// cannot guess.
func stateDir(o Options, id string) (string, error) {
	parent := o.StateDir
	if parent == "" {
		parent = os.TempDir()
	}
	return filepath.Abs(filepath.Join(parent, "fumehood-"+id))
}

func noState(err error) error {
	return stop("sandbox.state", "cannot make a directory for the sandbox's state", "free some space, or set TMPDIR to a writable directory", err)
}

// view chooses the user that commands run as: the owner of the workspace, or guestID
// with the owner mapped if that is root.
func (s *instance) view() (view, error) {
	info, err := os.Stat(s.o.Workspace)
	if err != nil || !info.IsDir() {
		return view{}, stop("sandbox.workspace", fmt.Sprintf("workspace %q is not a directory", s.o.Workspace), "name the directory that contains the pull request's code", err)
	}
	trees := append([]Bind{{s.o.Workspace, guest.Workspace}}, s.o.Trees...)
	v := view{trees: trees, dir: filepath.Join(s.dir, "trees")}
	for i := range trees {
		if err := os.Mkdir(v.path(i), 0o755); err != nil {
			return v, err
		}
	}
	owner := info.Sys().(*syscall.Stat_t)
	s.layout = layout{UID: int(owner.Uid), GID: int(owner.Gid)}
	if owner.Uid != 0 {
		return v, nil
	}
	s.layout.UID, s.layout.GID = guestID, guestID
	v.idmap = newIDMap()
	s.onClose(v.idmap.close)
	return v, nil
}

// trees lists the overlays' paths inside.
func (s *instance) trees() []string {
	list := []string{guest.Workspace}
	for _, t := range s.o.Trees {
		list = append(list, t.Target)
	}
	return list
}

func (s *instance) bundle() error {
	l := &s.layout
	l.ID, l.Init, l.Binds, l.Limits, l.Netns, l.Home = s.id, s.o.Init, s.o.Binds, s.o.Limits, s.o.Netns, s.o.Home
	l.Root, l.Upper = filepath.Join(s.dir, "root"), filepath.Join(s.dir, "upper")
	l.Cgroup = "/fumehood-" + s.id
	l.Trees = []Bind{{filepath.Join(s.dir, "trees", "0"), guest.Workspace}}
	for i, t := range s.o.Trees {
		l.Trees = append(l.Trees, Bind{filepath.Join(s.dir, "trees", fmt.Sprint(i+1)), t.Target})
	}
	if err := l.skeleton(); err != nil {
		return err
	}
	if err := s.generate(); err != nil {
		return err
	}
	return l.write(filepath.Join(s.dir, "bundle"))
}

// limit sets the cgroup's limits if they differ from the current ones.
func (s *instance) limit(l proposal.Limits) error {
	l.Wall, l.Output = 0, 0 // enforced by fumehood
	l = s.backgrounds.most(l)
	if l == s.limited {
		return nil
	}
	s.limited = proposal.Limits{} // unknown if this fails halfway
	if err := s.cgroup.limit(l); err != nil {
		return err
	}
	s.limited = l
	return nil
}

// generate writes the root's own files and links.
func (s *instance) generate() error {
	for path, data := range s.o.Files {
		host := filepath.Join(s.layout.Root, path)
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			return err
		}
		text := strings.NewReplacer("{uid}", fmt.Sprint(s.layout.UID), "{gid}", fmt.Sprint(s.layout.GID), "{services}", s.layout.services()).Replace(string(data))
		if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, target := range s.o.Links {
		if err := os.Symlink(target, filepath.Join(s.layout.Root, path)); err != nil {
			return err
		}
	}
	return nil
}

// newID returns a name of fixed length, because runsc accepts unique prefixes of ids.
func newID() (string, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
