// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
)

// receiveFile reads SIZE bytes and has write write them to a regular file, completely or not at all. It
// always reads all of them, because otherwise the next request would start in the middle
// of them.
func (s *server) receiveFile(
	args string, r io.Reader, w *bufio.Writer, write func(quoted string, size int64, data io.Reader) error,
) error {
	size, rest, err := cutNumber(args)
	if err != nil {
		return err
	}
	data := &io.LimitedReader{R: r, N: size}
	err = write(rest, size, data)
	if _, lost := io.Copy(io.Discard, data); lost != nil || err != nil {
		return errors.Join(err, lost)
	}
	fmt.Fprintf(w, "ok %d\n", size)
	return nil
}

func (s *server) writeFile(quoted string, size int64, data io.Reader) error {
	root, name, err := s.openToWrite(quoted, size)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := s.makeParents(root, name); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("not a regular file: " + typeOfMode(info.Mode()))
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return s.replaceFile(root, name, mode, data)
}

// openToWrite opens the workspace for size bytes at a quoted path, if they fit.
func (s *server) openToWrite(quoted string, size int64) (root *os.Root, name string, err error) {
	if name, err = strconv.Unquote(quoted); err != nil {
		return nil, "", fmt.Errorf("invalid path %s", quoted)
	}
	if err := roomFor(size); err != nil {
		return nil, "", err
	}
	root, err = os.OpenRoot(s.root)
	return root, name, err
}

// roomFor returns an error if the data does not fit, before anything is written.
func roomFor(size int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(Upper, &st); err != nil {
		return err
	}
	if size > int64(st.Bavail)*st.Bsize {
		return errors.New("no space left within the disk limit")
	}
	return nil
}

// makeParents makes the directories above name. None of the existing ones may be a link:
// see lstatOrLink.
func (s *server) makeParents(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		dir := name[:i]
		info, err := root.Lstat(dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%q is not a directory", dir)
		}
		if err == nil {
			continue
		}
		if err := errors.Join(root.Mkdir(dir, 0o755), root.Lchown(dir, s.uid, s.gid)); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile writes a temporary file next to name and renames it to name.
func (s *server) replaceFile(root *os.Root, name string, mode fs.FileMode, data io.Reader) error {
	part := path.Join(path.Dir(name), ".fumehood-put")
	_ = root.Remove(part) // whatever a command made there, except for a directory with files
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = copyData(f, data)
	err = errors.Join(err, f.Chown(s.uid, s.gid), f.Chmod(mode), f.Close())
	if err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		_ = root.Remove(part)
	}
	return err
}

// copyData copies with few system calls, which are slow in here.
func copyData(f *os.File, data io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{data}, make([]byte, 1<<20))
	return err
}

// appendFile writes to the end of a regular file, which must be there. If it fails, the file is as before.
func (s *server) appendFile(quoted string, size int64, data io.Reader) error {
	root, name, err := s.openToWrite(quoted, size)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := lstatOrLink(root, name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file: " + typeOfMode(info.Mode()))
	}
	// A command may have replaced it by a named pipe, which must not hold up other requests.
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file: " + typeOfMode(info.Mode()))
	}
	if err := copyData(f, data); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return f.Close()
}
