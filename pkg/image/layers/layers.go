// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package layers keeps what set-up left, from run to run: a directory of read-only images,
// each for one key. A key is the digest of everything that decides what set-up leaves; this
// package does not know how it is made.
//
// # Format
//
// A layer is one file, KEY.layer, with the 64 digits of its key: an EROFS image (see package
// image), and after it a block of 4096 bytes with a JSON document padded with spaces:
//
//	{"schema":"fumehood.layer/v1","key":"sha256:…","digest":"sha256:…","size":8192,"run":"…","made":"…"}
//
// digest and size are the image's. "private":true is in the layers of a temporary store that no
// other store may hold.
//
// # What it promises
//
//   - Get returns a layer only if the whole file was read and its digest is right, and if the
//     file itself names the requested key: a layer that was changed, truncated, or stored under
//     the name of another is removed, and Get returns an error.
//   - A layer appears under its name complete, or not at all. What a killed process left half
//     made is removed by the next Open.
//   - A layer that a process uses is never removed or replaced meanwhile.
//   - The store does not grow beyond its limit: the layers that were not used for longest go.
//
// # What it does not promise
//
// The digest is no signature: anyone who can write to the directory can make a layer for any
// key. So Open accepts only a directory that no other user can write to, and the caller must
// decide whose set-up may be kept in it.
package layers

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/pkg/image"
	"github.com/fumehood/fumehood/pkg/internal/lease"
	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/internal/store"
	"github.com/fumehood/fumehood/pkg/internal/strictjson"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a store and of one layer.
const (
	DefaultMaxSize = 5 << 30    // bytes of all layers
	MaxFiles       = 250_000    // of one layer
	MaxBytes       = 1536 << 20 // of one layer's files
)

// Version is the version of the format. It belongs into keys.
const Version = "fumehood.layer/v1"

// Codes of the *proposal.StopErrors of this package. None of them stops a run.
const (
	CodeStore   = "layers.store"   // the directory cannot be used
	CodeInvalid = "layers.invalid" // a layer is not what its name says
	CodeWrite   = "layers.write"   // a layer cannot be written
)

const (
	block   = 4096
	suffix  = ".layer"
	making  = "making-"
	maxSize = MaxBytes + MaxFiles*2*block // of a file
)

// A Store is a directory with layers. Several processes may use it at once.
type Store struct {
	dir       string
	max       int64
	temporary *lease.Dir // nil unless Close removes the store
}

// Open opens the directory for layers, or makes it, and removes what killed processes left in it.
// max is the most bytes of all layers; 0 means DefaultMaxSize.
func Open(dir string, max int64) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(dir), 0o755)
	}
	if err == nil {
		_, err = store.MakeDir(dir)
	}
	if err != nil {
		return nil, &proposal.StopError{Code: CodeStore, Message: fmt.Sprintf("cannot use the directory %q for layers", dir),
			Hint: "use a directory that only this user can enter", Err: err}
	}
	lease.Sweep(dir, making, (*lease.Dir).Remove)
	return &Store{dir: dir, max: cmp.Or(max, DefaultMaxSize)}, nil
}

// An Info describes a layer.
type Info struct {
	Schema string    `json:"schema"`
	Key    string    `json:"key"`
	Digest string    `json:"digest"` // of the image
	Size   int64     `json:"size"`   // of the image
	Run    string    `json:"run"`    // the run that made it
	Made   time.Time `json:"made"`
	// Private means that only a temporary store may hold it.
	Private bool `json:"private,omitempty"`
}

// A Layer is a layer that was verified and is in use until Close.
type Layer struct {
	Info
	// File begins with the image. It is what was verified, whatever happens to its name, and
	// must only be read.
	File *os.File
}

// Close ends the use of a layer. A nil Layer is not in use.
func (l *Layer) Close() error {
	if l == nil {
		return nil
	}
	return l.File.Close()
}

func invalid(key, why string, err error) error {
	return &proposal.StopError{Code: CodeInvalid, Message: fmt.Sprintf("the layer for %.19s… is not used: %s", key, why), Hint: "it was removed; a run with --layers write makes it again", Err: err}
}

// path returns the file of a key, "sha256:" and 64 digits.
func (s *Store) path(key string) (string, error) {
	digits, ok := strings.CutPrefix(key, "sha256:")
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != sha256.Size || digits != strings.ToLower(digits) {
		return "", &proposal.StopError{Code: CodeInvalid, Message: fmt.Sprintf("invalid key %q", key), Hint: "use a key of the form sha256:HEX"}
	}
	return filepath.Join(s.dir, digits+suffix), nil
}

// Get returns the layer for key, or nil if there is none. It reads the whole file. A nil Store
// has none.
func (s *Store) Get(key string) (*Layer, error) {
	if s == nil {
		return nil, nil
	}
	path, err := s.path(key)
	if err != nil {
		return nil, err
	}
	l, err := open(path)
	if err == nil {
		err = l.fits(s, key)
	}
	if err == nil {
		err = l.verify()
	}
	if err != nil && l != nil {
		_ = l.File.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EWOULDBLOCK): // the second is removing it
		return nil, nil
	case err != nil:
		return nil, invalid(key, err.Error(), os.Remove(path))
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the time of the last use: see Prune
	return l, nil
}

// open opens and locks a layer, and reads what it says of itself.
func open(path string) (*Layer, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	l := &Layer{File: file}
	if err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		err = own(file)
	}
	if err == nil {
		l.Info, err = readInfo(file)
	}
	if err != nil {
		return l, err
	}
	named, err := os.Lstat(path)
	if locked, statErr := file.Stat(); err != nil || statErr != nil || !os.SameFile(named, locked) {
		return l, fs.ErrNotExist // pruned meanwhile
	}
	return l, nil
}

var runID = pattern.New(`^[A-Za-z0-9._-]{1,128}$`)

// own returns an error if another user can change file.
func own(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errors.New("another user can change it")
	}
	return nil
}

// readInfo reads the last block of a layer's file.
func readInfo(file *os.File) (i Info, err error) {
	info, err := file.Stat()
	if err != nil {
		return i, err
	}
	if !info.Mode().IsRegular() || info.Size() < 2*block || info.Size()%block != 0 || info.Size() > maxSize {
		return i, errors.New("it was truncated, or is not a layer")
	}
	data := make([]byte, block)
	if _, err := file.ReadAt(data, info.Size()-block); err != nil {
		return i, err
	}
	if err := strictjson.Decode(data, &i); err != nil || i.Schema != Version || !runID.MatchString(i.Run) {
		return Info{}, errors.New("it was truncated, or is not a layer")
	}
	if i.Size != info.Size()-block {
		return Info{}, errors.New("its size is not what it says")
	}
	return i, nil
}

// fits returns an error unless a layer for key in s can be the one that i describes.
func (i Info) fits(s *Store, key string) error {
	switch {
	case i.Key != key:
		return errors.New("it was made for another set-up")
	case i.Private && s.temporary == nil:
		return errPrivate
	}
	return nil
}

var errPrivate = errors.New("it is private to the run that made it")

// verify checks that the image is what the layer says.
func (l *Layer) verify() error {
	sum := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(l.File, 0, l.Size), make([]byte, 1<<20)); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != l.Digest {
		return errors.New("its content was changed")
	}
	return nil
}

// A Maker makes one layer. Keep or Abort must be called.
type Maker struct {
	store  *Store
	info   Info
	dir    *lease.Dir
	writer *image.Writer
}

// Make begins the layer with i's Key, Run and Private.
func (s *Store) Make(i Info) (*Maker, error) {
	if _, err := s.path(i.Key); err != nil {
		return nil, err
	}
	if err := i.fits(s, i.Key); err != nil {
		return nil, cannotWrite(err)
	}
	dir, err := lease.Make(s.dir, making)
	if err != nil {
		return nil, cannotWrite(err)
	}
	m := &Maker{store: s, dir: dir, info: Info{Schema: Version, Key: i.Key, Run: i.Run, Private: i.Private, Made: time.Now().UTC().Truncate(time.Second)}}
	if m.writer, err = image.Create(m.file(), image.Options{MaxFiles: MaxFiles, MaxBytes: min(maxSize-block, s.max)}); err != nil {
		return nil, errors.Join(err, m.Abort())
	}
	return m, nil
}

func (m *Maker) file() string { return filepath.Join(m.dir.Path, "image") }

func cannotWrite(err error) error {
	return &proposal.StopError{Code: CodeWrite, Message: "cannot write a layer", Hint: "free some space, or run fumehood cache prune", Err: err}
}

// Add adds a file, as image.Writer.Add does.
func (m *Maker) Add(e image.Entry, content io.Reader) error { return m.writer.Add(e, content) }

// Abort removes what was made so far.
func (m *Maker) Abort() error {
	if m.writer != nil {
		m.writer.Abort()
	}
	return m.dir.Remove()
}

// Keep makes the layer available and removes others if the store would exceed its limit. If
// another process has kept a layer for the same key meanwhile, that one stays.
func (m *Maker) Keep() (i Info, err error) {
	defer func() { err = errors.Join(err, m.Abort()) }()
	if m.info.Digest, m.info.Size, err = m.writer.Close(); err != nil {
		return i, err
	}
	path, err := m.store.path(m.info.Key)
	if err == nil {
		err = m.seal()
	}
	if err == nil {
		err = m.store.shrink(m.store.max - m.info.Size - block)
	}
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, m.file(), unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return i, cannotWrite(err)
	}
	return m.info, syncDir(m.store.dir)
}

// seal appends what the layer says of itself, and brings the file to disk.
func (m *Maker) seal() error {
	data, err := json.Marshal(m.info)
	if err != nil || len(data) > block {
		return errors.Join(err, errors.New("too much about a layer"))
	}
	f, err := os.OpenFile(m.file(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, bytes.Repeat([]byte(" "), block-len(data))...))
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// An Entry is a layer in a list.
type Entry struct {
	Info
	Used time.Time `json:"used"` // last
	// Problem is why the layer cannot be used, "" if its last block can be read. Its content was
	// not verified.
	Problem string `json:"problem,omitempty"`
	path    string
}

// List returns the layers, the last used first.
func (s *Store) List() ([]Entry, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	list := []Entry{}
	for _, f := range files {
		if info, err := f.Info(); err == nil && strings.HasSuffix(f.Name(), suffix) {
			list = append(list, entryOf(filepath.Join(s.dir, f.Name()), info))
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.path, b.path)) })
	return list, nil
}

func entryOf(path string, info fs.FileInfo) Entry {
	e := Entry{Used: info.ModTime().UTC(), path: path}
	l, err := open(path)
	if l != nil {
		e.Info = l.Info
		_ = l.File.Close()
	}
	if digits := strings.TrimSuffix(filepath.Base(path), suffix); err == nil && e.Key != "sha256:"+digits {
		err = errors.New("it was made for another set-up")
	}
	if err != nil {
		e.Info, e.Problem = Info{Key: "sha256:" + strings.TrimSuffix(filepath.Base(path), suffix), Size: info.Size()}, err.Error()
	}
	return e
}

// Prune removes the layers that were last used before the time, those that were not used for
// longest as long as all are larger than size bytes, and what cannot be a layer. A layer in use
// stays. It returns what was removed.
func (s *Store) Prune(size int64, before time.Time) (removed []Entry, err error) {
	removed, _, err = s.prune(size, before)
	return removed, err
}

// prune is Prune, and returns how many bytes are left.
func (s *Store) prune(size int64, before time.Time) (removed []Entry, left int64, err error) {
	list, err := s.List()
	for _, e := range list {
		left += e.Size + block
	}
	for _, e := range slices.Backward(list) {
		if left <= size && !e.Used.Before(before) && e.Problem == "" {
			continue
		}
		gone, err := remove(e.path)
		if err != nil {
			return removed, left, err
		}
		if gone {
			removed = append(removed, e)
			left -= e.Size + block
		}
	}
	return removed, left, err
}

// shrink removes layers until at most size bytes are left.
func (s *Store) shrink(size int64) error {
	if size < 0 {
		return fmt.Errorf("the layer is larger than the limit of %d bytes", s.max)
	}
	_, left, err := s.prune(size, time.Time{})
	if err == nil && left > size {
		return errors.New("other layers are in use, and there is no room for another")
	}
	return err
}

// remove removes a layer unless a process uses it.
func remove(path string) (gone bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return false, nil
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, nil
}
