// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/sandbox/image"
)

// DefaultImageFrom is the number of files and directories from which a workspace is shown
// as an image: 1 is always, math.MaxInt never. BenchmarkFiles has the figures: making the
// image costs less than one command that reads every file gains.
var DefaultImageFrom = 5000

// maxSnapshot bounds the image of a workspace, which is made in a second then. A larger
// one is shown as it is.
const maxSnapshot = 1 << 30

// An Image makes the tree in an EROFS image, as package image writes it, visible inside.
// Only root or this user may be able to write to the file. It is opened once for each
// sandbox and verified through that descriptor, which runsc inherits: replacing the file
// has no effect on a sandbox that has started.
type Image struct {
	Source string // absolute, on the host
	Target string // absolute, inside
	Digest string // "sha256:…" of the file
}

// openVerified opens and verifies i. What was verified before is not read again unless its inode,
// size or times differ.
func (i Image) openVerified() (*os.File, error) {
	f, err := os.OpenFile(i.Source, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, badImage(i.Source, err)
	}
	if err := i.verifyDigest(f); err != nil {
		return nil, badImage(i.Source, errors.Join(err, f.Close()))
	}
	return f, nil
}

func (i Image) verifyDigest(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || owner != 0 && int(owner) != os.Geteuid() {
		return errors.New("it is not a regular file that only its owner, root or this user, can write")
	}
	sum, err := digestOf(f)
	if err == nil && sum != i.Digest {
		err = fmt.Errorf("it is %s, not %s", sum, i.Digest)
	}
	return err
}

func badImage(path string, err error) error {
	return newStopError("sandbox.image", fmt.Sprintf("the image %q cannot be used", path),
		"delete the image; it is made again", err)
}

// A snapshot is the image of a run's workspace, shared by the run's sandboxes. It has no
// name, so that it is gone with this process.
type snapshot struct {
	file  *os.File // nil if the workspace is shown as it is
	tried bool
}

// takeSnapshot makes the snapshot if the workspace has at least from files, once. tmp is the path
// that the image has meanwhile. A workspace that cannot be an image, because it has a
// socket, changes or is too large for the disk, is shown as it is.
func (n *snapshot) takeSnapshot(ctx context.Context, dir, tmp string, from int, o image.DirOptions) error {
	if n.tried || !hasFiles(dir, from) {
		n.tried = true
		return nil
	}
	_, err := image.FromDir(ctx, tmp, dir, o)
	if ctx.Err() != nil {
		return ctx.Err() // the next sandbox tries again
	}
	if n.tried = true; err != nil {
		return nil
	}
	if n.file, err = os.Open(tmp); err != nil {
		return err
	}
	return os.Remove(tmp)
}

func (n *snapshot) close() error {
	file := n.file
	if n.file = nil; file == nil {
		return nil
	}
	return file.Close()
}

var errEnough = errors.New("enough")

// hasFiles reports whether there are at least n files and directories below dir.
func hasFiles(dir string, n int) bool {
	switch {
	case n <= 1:
		return true
	case n == math.MaxInt:
		return false
	}
	left := n
	err := filepath.WalkDir(dir, func(string, os.DirEntry, error) error {
		if left--; left <= 0 {
			return errEnough
		}
		return nil
	})
	return err == errEnough
}

// swapRoot gives root's files to guestID and guestID's to root, as identityMap does.
func swapRoot(uid, gid uint32) (uint32, uint32) { return swapGuestID(uid), swapGuestID(gid) }

func swapGuestID(id uint32) uint32 {
	switch id {
	case 0:
		return guestID
	case guestID:
		return 0
	}
	return id
}
