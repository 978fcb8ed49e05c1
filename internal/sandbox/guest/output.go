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
	"strings"
	"syscall"
)

// listMatches lists the workspace's paths that match a pattern. os.Root keeps every
// lookup inside the workspace, even through symlinks.
func (s *server) listMatches(args string, w *bufio.Writer) error {
	limit, rest, err := cutNumber(args)
	if err != nil {
		return err
	}
	pattern, err := strconv.Unquote(rest)
	if err != nil {
		return fmt.Errorf("invalid pattern %s", rest)
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	names, err := matchPattern(root, pattern)
	if err != nil {
		return err
	}
	for i, name := range names {
		if int64(i) >= limit {
			break
		}
		info, err := lstatOrLink(root, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "match %s %d %q\n", typeOfMode(info.Mode()), info.Size(), name)
	}
	fmt.Fprintf(w, "ok %d\n", max(0, int64(len(names))-limit))
	return nil
}

// matchPattern is fs.Glob, except that a component ** matches any number of directories, and that it also
// finds a symlink whose name has no wildcards, so that the host can report why it is not copied. No
// directory is reached through a link.
func matchPattern(root *os.Root, pattern string) ([]string, error) {
	if _, err := root.Lstat(pattern); err == nil {
		return []string{pattern}, nil
	}
	before, after, found := strings.Cut("/"+pattern+"/", "/**/")
	if !found {
		return fs.Glob(root.FS(), pattern)
	}
	tops, last := []string{"."}, strings.Trim(after, "/")
	if before != "" {
		var err error
		if tops, err = fs.Glob(root.FS(), before[1:]); err != nil {
			return nil, err
		}
	}
	if last == "" {
		last = "*"
	}
	if strings.Contains("/"+last+"/", "/**/") {
		return nil, errors.New("a pattern has one ** at most")
	}
	var names []string
	for _, top := range tops {
		if err := matchBelow(root, top, last, &names); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// matchBelow adds the paths that match pattern in top or in a directory below it.
func matchBelow(root *os.Root, top, pattern string, names *[]string) error {
	return fs.WalkDir(root.FS(), top, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a directory that cannot be read has no matches
		}
		found, err := fs.Glob(root.FS(), path.Join(escapePattern(dir), pattern))
		*names = append(*names, found...)
		return err
	})
}

// escapePattern returns a pattern that only name matches.
func escapePattern(name string) string {
	if name == "." {
		return ""
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// lstatOrLink returns the file info of name, or of the first symlink in its path: a name
// below a link is not a file of the workspace, wherever the link leads. os.Root is
// not enough, because it relies on the kernel for the resolution, and gVisor's
// openat2 follows an absolute link anyway.
func lstatOrLink(root *os.Root, name string) (fs.FileInfo, error) {
	if link, err := linkAbove(root, name); link != nil || err != nil {
		return link, err
	}
	return root.Lstat(name)
}

// linkAbove returns the first symlink among the directories of name; nil if there is none.
func linkAbove(root *os.Root, name string) (fs.FileInfo, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return info, nil
		}
	}
	return nil, nil
}

// openSide opens the tree that the first word of args names, and returns the path in the rest.
func (s *server) openSide(args string) (root *os.Root, name string, err error) {
	side, quoted, _ := strings.Cut(args, " ")
	if name, err = strconv.Unquote(quoted); err != nil {
		return nil, "", fmt.Errorf("invalid path %s", quoted)
	}
	switch {
	case side == "new":
		root, err = os.OpenRoot(s.root)
	case side == "old" && s.lower != "":
		root, err = os.OpenRoot(s.lower)
	default:
		err = fmt.Errorf("invalid side %q", side)
	}
	return root, name, err
}

// describeEntry describes a path of one side. What is below a symlink is not there: see lstatOrLink.
func (s *server) describeEntry(args string, w *bufio.Writer) error {
	root, name, err := s.openSide(args)
	if err != nil {
		return err
	}
	defer root.Close()
	link, err := linkAbove(root, name)
	var info fs.FileInfo
	if err == nil && link == nil {
		info, err = root.Lstat(name)
	}
	if link != nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		fmt.Fprintf(w, "entry none 0 0 %q\n", "")
		return nil
	}
	target := ""
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err = root.Readlink(name)
	}
	if err != nil {
		return err
	}
	var mode uint32
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		mode = st.Mode & 0o7777
	}
	fmt.Fprintf(w, "entry %s %d %d %q\n", typeOfMode(info.Mode()), mode, info.Size(), target)
	return nil
}

// readFile sends one regular file of at most MAX bytes.
func (s *server) readFile(args string, w *bufio.Writer) error {
	limit, rest, err := cutNumber(args)
	if err != nil {
		return err
	}
	f, size, err := s.openFile(rest)
	if err != nil {
		return err
	}
	defer f.Close()
	if size > limit {
		return fmt.Errorf("not a regular file of at most %d bytes", limit)
	}
	return sendFile(f, size, w)
}

// readPart sends at most MAX bytes of one regular file, from an offset.
func (s *server) readPart(args string, w *bufio.Writer) error {
	from, rest, err := cutNumber(args)
	if err != nil {
		return err
	}
	limit, rest, err := cutNumber(rest)
	if err != nil {
		return err
	}
	f, size, err := s.openFile(rest)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	return sendFile(f, min(limit, max(0, size-from)), w)
}

// openFile opens the regular file that args, a side and a path, name, and returns its size.
func (s *server) openFile(args string) (*os.File, int64, error) {
	root, name, err := s.openSide(args)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	info, err := lstatOrLink(root, name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a regular file: " + typeOfMode(info.Mode()))
	}
	f, err := root.Open(name)
	return f, info.Size(), err
}

// sendFile sends as many bytes as it announces. A process of the host may shorten a file of the
// tree below: then zeros follow, and the answer ends with an error.
func sendFile(f *os.File, size int64, w *bufio.Writer) error {
	fmt.Fprintf(w, "data %d\n", size)
	if err := copyPadded(f, size, w); err != nil {
		return err
	}
	fmt.Fprintf(w, "ok %d\n", size)
	return nil
}

// copyPadded writes size bytes: those of f, and zeros if it has fewer, with an error.
func copyPadded(f *os.File, size int64, w *bufio.Writer) error {
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(f, size), make([]byte, min(size, 1<<20)+1))
	if err == nil && n < size {
		err = io.EOF
	}
	for range size - n {
		_ = w.WriteByte(0) // Flush returns the error
	}
	if err != nil {
		return errors.New("the file changed while it was read")
	}
	return nil
}
