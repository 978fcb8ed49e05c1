// SPDX-License-Identifier: Apache-2.0

// Package store keeps files by key in one directory, for processes that use it at the same
// time.
//
// The package promises:
//
//   - A reader sees an entry whole or not at all: Put writes to a file with a
//     name that is not a key, and renames it.
//   - The entries together have at most the store's size. Put removes those that were not used
//     for the longest time.
//   - The directory belongs to this user and no other user can read or write it. Symbolic links
//     are not followed below it, and an entry is a regular file of this user with one name.
//
// It does not protect against root, or another process of this user that writes to the
// directory. So an entry must contain what its reader needs to notice another content than
// was put: its key, and a digest.
package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// ErrTooLarge means that an entry is larger than the whole store.
var ErrTooLarge = errors.New("the entry is larger than the store")

// maxEntries bounds how many files a store may have, whatever their sizes are.
const maxEntries = 100_000

// abandoned is the age after which an unfinished file of an ended process is removed.
const abandoned = 24 * time.Hour

var keys = pattern.New(`^[0-9a-f]{64}$`)

// lockName and the prefix of unfinished files are not keys.
const (
	lockName   = "lock"
	unfinished = "new-"
)

// A Store is an open store. Its methods are safe for concurrent use, also by several processes.
type Store struct {
	dir *os.Root
	max int64
}

// An Entry describes an entry of a store.
type Entry struct {
	Key  string
	Size int64 // bytes
	Used time.Time
}

// MakeDir makes dir, but not its parents, for this user alone. It refuses a directory that other
// users can enter.
func MakeDir(dir string) (fs.FileInfo, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || !isOwnFile(info) || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("directory %q must belong to this user, with mode 0700", dir)
	}
	return info, nil
}

// Open opens the store in dir, whose entries have at most max bytes together, and calls MakeDir
// for it.
func Open(dir string, max int64) (*Store, error) {
	info, err := MakeDir(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("directory %q was replaced", dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Store{dir: root, max: max}, nil
}

// isOwnFile reports whether info's file belongs to this user.
func isOwnFile(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && int(stat.Uid) == os.Geteuid()
}

// Close closes the store.
func (s *Store) Close() error { return s.dir.Close() }

// Get opens the entry called key, which is 64 lower-case hexadecimal digits, and marks it as
// used where it can. The error is fs.ErrNotExist if there is none. The entry stays readable if
// it is removed while it is open.
func (s *Store) Get(key string) (*os.File, error) {
	if !keys.MatchString(key) {
		return nil, fmt.Errorf("invalid key %q", key)
	}
	f, err := s.dir.OpenFile(key, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !isUsable(info) {
		err = fmt.Errorf("entry %s is not a file of this user alone", key)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	now := time.Now()
	_ = s.dir.Chtimes(key, now, now) // a store on a read-only file system is used, too
	return f, nil
}

// isUsable reports whether no other user, and no other name, reaches an opened entry. It has no
// name if it was replaced or removed meanwhile.
func isUsable(info fs.FileInfo) bool {
	stat, known := info.Sys().(*syscall.Stat_t)
	return known && info.Mode().IsRegular() && isOwnFile(info) && info.Mode().Perm()&0o022 == 0 && stat.Nlink <= 1
}

// Put stores what write writes under key, in place of an entry with that key. With an error
// nothing was stored, and the entry that was there before is still there.
func (s *Store) Put(key string, write func(io.Writer) error) (err error) {
	if !keys.MatchString(key) {
		return fmt.Errorf("invalid key %q", key)
	}
	name := fmt.Sprintf("%s%d-%d", unfinished, os.Getpid(), time.Now().UnixNano())
	f, err := s.dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.dir.Remove(name))
		}
	}()
	err = errors.Join(write(&limitedWriter{f, s.max}), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return s.withLock(func() error { return s.commitFile(name, key) })
}

// A limitedWriter writer writes at most left bytes.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(data []byte) (int, error) {
	if l.left -= int64(len(data)); l.left < 0 {
		return 0, ErrTooLarge
	}
	return l.w.Write(data)
}

// commitFile makes room for the file called name, and gives it the name key.
func (s *Store) commitFile(name, key string) error {
	info, err := s.dir.Lstat(name)
	if err != nil {
		return err
	}
	if err := s.makeRoom(info.Size(), key); err != nil {
		return err
	}
	return s.dir.Rename(name, key)
}

// withLock calls f while no other process changes the store.
func (s *Store) withLock(f func() error) error {
	lock, err := s.dir.OpenFile(lockName, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which releases the lock
	for {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return err
	}
	return f()
}

// Remove removes the entry called key, if it is there.
func (s *Store) Remove(key string) error {
	if !keys.MatchString(key) {
		return fmt.Errorf("invalid key %q", key)
	}
	return s.withLock(func() error { return ignoreNotExist(s.dir.Remove(key)) })
}

// ignoreNotExist is err, except for that of a file that is not there.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List returns the entries, those that were not used for the longest time first.
func (s *Store) List() ([]Entry, error) {
	files, err := s.listFiles()
	var list []Entry
	for _, info := range files {
		if keys.MatchString(info.Name()) {
			list = append(list, Entry{info.Name(), info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return a.Used.Compare(b.Used) })
	return list, err
}

// listFiles returns all files of the store.
func (s *Store) listFiles() (list []fs.FileInfo, err error) {
	dir, err := s.dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	found, err := dir.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for _, d := range found {
		info, err := d.Info()
		if err == nil {
			list = append(list, info)
		} else if ignoreNotExist(err) != nil {
			return nil, err
		}
	}
	return list, nil
}

// PruneTo removes entries until all of them together have at most max bytes, and files that
// processes left unfinished.
func (s *Store) PruneTo(max int64) error {
	return s.withLock(func() error {
		return errors.Join(s.removeUnfinished(), s.shrinkTo(max, 0, ""))
	})
}

// makeRoom makes room for size bytes that replace the entry called key.
func (s *Store) makeRoom(size int64, key string) error {
	return errors.Join(s.removeUnfinished(), s.shrinkTo(s.max-size, 1, key))
}

// shrinkTo removes entries except for key until the others have at most max bytes, and room for
// more entries is left.
func (s *Store) shrinkTo(max int64, more int, key string) error {
	list, err := s.List()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e Entry) bool { return e.Key == key })
	total := int64(0)
	for _, e := range list {
		total += e.Size
	}
	for ; len(list) > 0 && (total > max || len(list)+more > maxEntries/2); list = list[1:] {
		if err := ignoreNotExist(s.dir.Remove(list[0].Key)); err != nil {
			return err
		}
		total -= list[0].Size
	}
	return nil
}

// removeUnfinished removes unfinished files of processes that ended long ago.
func (s *Store) removeUnfinished() error {
	files, err := s.listFiles()
	for _, info := range files {
		if strings.HasPrefix(info.Name(), unfinished) && time.Since(info.ModTime()) > abandoned {
			err = errors.Join(err, ignoreNotExist(s.dir.Remove(info.Name())))
		}
	}
	return err
}

// Path returns the directory of the store.
func (s *Store) Path() string { return filepath.Clean(s.dir.Name()) }
