// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/sandbox/guest"
	"github.com/fumehood/fumehood/internal/sandbox/image"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// prepareRunsc makes everything that runsc needs, and starts only the launcher's thread.
func (s *instance) prepareRunsc(ctx context.Context) error {
	if err := s.createStateDirs(); err != nil {
		return err
	}
	for _, name := range []string{"bundle", "root", "upper", "trees"} {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
			return err
		}
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		removeDeadSandboxes()
		lease.Sweep(s.o.stateParent(), savedPrefix, (*lease.Dir).Remove)
	}()
	s.onClose(func() error { <-reaped; return nil }) // a short run must not leave half of it
	var err error
	if s.cgroup, err = newCgroup(cgroupMount, s.o.Cgroup, "fumehood-"+s.id); err != nil {
		return noCgroup(err)
	}
	s.onClose(s.cgroup.remove)
	if err := s.setCgroupLimits(s.startLimits()); err != nil {
		return noLimit(err)
	}
	if s.gate, err = newGate(s); err != nil {
		return err
	}
	if s.watch, err = newWatch(s.dir, s.gate.socketPath(), s.o.patience, s.overlayPaths()); err != nil {
		return err
	}
	s.onClose(s.watch.close)
	v, err := s.chooseUser(ctx)
	if err != nil {
		return err
	}
	// Entering a v1 cgroup takes 10 ms and more, and the map of users 3 ms; the bundle is made
	// in parallel.
	s.launcher = newLauncher(func() error { return errors.Join(s.cgroup.enterThread(), v.enterNamespace()) })
	s.onClose(func() error { s.launcher.close(); return nil })
	return s.writeBundle()
}

// startLimits returns the limits before the first command. gVisor's own start may use every
// processor: the first command would otherwise pay for the start.
func (s *instance) startLimits() proposal.Limits {
	l := s.o.Limits
	l.CPUs = float64(runtime.NumCPU())
	return l
}

// createStateDirs makes the sandbox's directories, after it has written a note of them for
// reap.
func (s *instance) createStateDirs() error {
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
	if err := (sandboxNote{s.id, s.dir, s.o.Cgroup}).writeNote(s.root.Path); err != nil {
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
	return filepath.Abs(filepath.Join(o.stateParent(), "fumehood-"+id))
}

func (o Options) stateParent() string { return cmp.Or(o.StateDir, os.TempDir()) }

func noState(err error) error {
	return newStopError("sandbox.state", "cannot make a directory for the sandbox's state",
		"free some space, or set TMPDIR to a writable directory", err)
}

// chooseUser chooses the user that commands run as: the owner of the workspace, or guestID
// with the owner mapped if that is root.
func (s *instance) chooseUser(ctx context.Context) (treeView, error) {
	info, err := os.Stat(s.o.Workspace)
	if err != nil || !info.IsDir() {
		return treeView{}, newStopError("sandbox.workspace",
			fmt.Sprintf("workspace %q is not a directory", s.o.Workspace),
			"name the directory that contains the pull request's code", err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	s.layout = layout{UID: int(owner.Uid), GID: int(owner.Gid)}
	if owner.Uid == 0 {
		s.layout.UID, s.layout.GID = guestID, guestID
	}
	v := treeView{dir: filepath.Join(s.dir, "trees")}
	if err := s.openTrees(ctx, owner.Uid == 0); err != nil {
		return v, err
	}
	for i, t := range s.layout.Trees {
		if t.image {
			continue
		}
		v.trees = append(v.trees, Bind{t.Source, v.mountPath(i)})
		s.layout.Trees[i].Source = v.mountPath(i)
		if err := os.Mkdir(v.mountPath(i), 0o755); err != nil {
			return v, err
		}
	}
	if owner.Uid != 0 || len(v.trees) == 0 {
		return v, nil
	}
	v.idmap = newIDMap()
	s.onClose(v.idmap.close)
	return v, nil
}

// openTrees makes the list of the overlays' trees, and opens their images.
func (s *instance) openTrees(ctx context.Context, swap bool) error {
	o := image.DirOptions{Private: true, Options: image.Options{MaxBytes: maxSnapshot}}
	if swap {
		o.Owner = swapRoot
	}
	snapshot := s.o.workspace
	if err := snapshot.takeSnapshot(ctx, s.o.Workspace, filepath.Join(s.dir, "workspace.erofs"), s.o.ImageFrom,
		o); err != nil {
		return err
	}
	if snapshot.file != nil {
		s.addImage(snapshot.file, s.o.WorkspaceInside())
	} else {
		s.layout.Trees = append(s.layout.Trees, tree{Bind: Bind{s.o.Workspace, s.o.WorkspaceInside()}})
	}
	for _, t := range s.o.Trees {
		s.layout.Trees = append(s.layout.Trees, tree{Bind: t})
	}
	if s.o.rootFile != nil {
		s.layout.Image = s.inheritFile(s.o.rootFile)
	}
	for _, i := range s.o.Images {
		file, err := i.openVerified()
		if err != nil {
			return err
		}
		s.onClose(file.Close)
		s.addImage(file, i.Target)
	}
	if s.o.Layer != nil {
		s.layout.Layer = s.inheritFile(s.o.Layer)
	}
	return nil
}

// addImage adds a tree whose image runsc inherits.
func (s *instance) addImage(file *os.File, target string) {
	s.layout.Trees = append(s.layout.Trees, tree{Bind{s.inheritFile(file), target}, true})
}

// inheritFile returns the path by which runsc opens the descriptor of an image.
func (s *instance) inheritFile(file *os.File) string {
	return fmt.Sprintf("/proc/self/fd/%d", s.inheritNumber(file))
}

// inheritNumber returns the number of a descriptor that runsc inherits.
func (s *instance) inheritNumber(file *os.File) int {
	const first = 3 // of exec.Cmd.ExtraFiles
	s.images = append(s.images, file)
	return first + len(s.images) - 1
}

// overlayPaths lists the overlays' paths inside.
func (s *instance) overlayPaths() []string {
	list := []string{s.o.WorkspaceInside()}
	for _, t := range s.o.Trees {
		list = append(list, t.Target)
	}
	for _, i := range s.o.Images {
		list = append(list, i.Target)
	}
	return list
}

func (s *instance) writeBundle() error {
	l := &s.layout
	l.ID, l.Init, l.Binds, l.Limits, l.Netns, l.Home = s.id, s.o.Init, s.o.Binds, s.o.Limits, s.o.Netns, s.o.Home
	l.Recorded, l.UserHome = s.o.Recorded, s.o.UserHome
	l.Root, l.Upper = filepath.Join(s.dir, "root"), filepath.Join(s.dir, "upper")
	l.Cgroup, l.files = filepath.Join("/", s.o.Cgroup, "fumehood-"+s.id), s.o.files
	if err := l.createMountPoints(); err != nil {
		return err
	}
	if err := s.writeRootFiles(); err != nil {
		return err
	}
	return l.writeBundle(filepath.Join(s.dir, "bundle"))
}

// setCgroupLimits sets the cgroup's limits if they differ from the current ones.
func (s *instance) setCgroupLimits(l proposal.Limits) error {
	l.Wall, l.Output = 0, 0 // enforced by fumehood
	l = s.backgrounds.raiseSharedLimits(l)
	if l == s.limited {
		return nil
	}
	s.limited = proposal.Limits{} // unknown if this fails halfway
	if err := s.cgroup.setLimits(l); err != nil {
		return err
	}
	s.limited = l
	return nil
}

// writeRootFiles writes the root's own files and links.
func (s *instance) writeRootFiles() error {
	for path, data := range s.o.Files {
		host := filepath.Join(s.layout.Root, path)
		if err := os.MkdirAll(filepath.Dir(host), 0o755); err != nil {
			return err
		}
		text := strings.NewReplacer("{uid}", fmt.Sprint(s.layout.UID), "{gid}", fmt.Sprint(s.layout.GID), "{services}",
			s.layout.servicePasswdLines()).Replace(string(data))
		if err := os.WriteFile(host, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, target := range s.o.Links {
		if err := os.Symlink(target, filepath.Join(s.layout.Root, path)); err != nil {
			return err
		}
	}
	if s.o.UserHome {
		return s.linkUserPlaces()
	}
	return nil
}

// linkUserPlaces makes the links to the workspace and to guest.UserScratch. A root with a directory of
// that name keeps it.
func (s *instance) linkUserPlaces() error {
	if err := os.Symlink(UserHome, filepath.Join(s.layout.Root, Workspace)); err != nil {
		return err
	}
	for _, name := range guest.UserScratch {
		err := os.Symlink("/tmp/"+name, filepath.Join(s.layout.Root, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
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
