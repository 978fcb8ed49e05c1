// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fumehood/fumehood/internal/kit/pathwalk"
)

// A Changeable is Private's error about a path that another user can change.
type Changeable struct {
	Path string
	Mode fs.FileMode
}

// Error implements error.
func (e *Changeable) Error() string {
	return fmt.Sprintf("another user can change %s (mode %04o): use chown and chmod go-w", e.Path, e.Mode.Perm())
}

// CheckPrivate returns an error, a *Changeable or of the file system, unless only root and the user uid can
// change what is at path, or put something else there: no other user owns or may write to it, to a
// directory above it, or to what a symbolic link in it names. In a directory with the sticky bit
// others cannot replace what they do not own. It looks once: a later change of what this user owns
// is not seen.
func CheckPrivate(path string, uid int) error {
	if !filepath.IsAbs(path) {
		return errors.New(path + " is not an absolute path")
	}
	at, err := pathwalk.Resolve(path, func(step string) (string, error) {
		dir, err := statOwned(filepath.Dir(step), uid)
		if err != nil {
			return "", err
		}
		if isWritableByOthers(dir) && dir.Mode()&os.ModeSticky == 0 {
			return "", &Changeable{filepath.Dir(step), dir.Mode()}
		}
		info, err := statOwned(step, uid)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			return "", err
		}
		return os.Readlink(step)
	})
	if errors.Is(err, syscall.ELOOP) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return err
	}
	info, err := statOwned(at, uid)
	if err == nil && isWritableByOthers(info) {
		err = &Changeable{at, info.Mode()}
	}
	return err
}

func isWritableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// statOwned is Lstat, with an error if path is another user's.
func statOwned(path string, uid int) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 && int(st.Uid) != uid {
		return nil, &Changeable{path, info.Mode()}
	}
	return info, nil
}
