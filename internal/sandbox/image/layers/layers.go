// SPDX-License-Identifier: Apache-2.0

// Package layers keeps what set-up left, from run to run: a directory of read-only images.
//
// A layer has two keys. Set-up key is what the caller knows before set-up runs: the commands, the
// root, policy and so on. Below it are at most MaxLayers layers, each with the inputs of the
// set-up that made it: paths of the workspace and what set-up learned of each. A layer is used
// where its set-up key is the same and a workspace has all its inputs. Its key is the digest of
// both. This package does not know how set-up keys and inputs are made.
//
// # Format
//
// A layer is one file, SETUP-KEY.layer, with the 64 digits of its keys: an EROFS image (see package
// image), the inputs, and a block of 4096 bytes with a JSON document padded with spaces:
//
//	{"schema":"fumehood.layer/v2","setup":"sha256:…","key":"sha256:…","digest":"sha256:…","size":8192,"inputs":512,"run":"…","made":"…"}
//
// digest and size are the image's, and inputs is the size of the inputs: a line of the form
// "PATH" STATE for each, with the path as Go quotes it, sorted by path, padded with line feeds to
// a multiple of 4096 bytes. "private":true is in the layers of a temporary store that no other
// store may hold. Files of other versions are not layers.
//
// # What it promises
//
//   - Find returns a layer only if the whole file was read and its digests are right, and if the
//     file itself names the requested set-up key: a layer that was changed, truncated, or stored
//     under the name of another is removed, and Find returns an error.
//   - A layer appears under its name complete, or not at all. What a killed process left half
//     made is removed by the next Open.
//   - A layer that a process uses is never removed or replaced meanwhile.
//   - The store does not grow beyond its limits of bytes and layers: those that were not used for longest go.
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/store"
	"github.com/fumehood/fumehood/internal/kit/strictjson"
	"github.com/fumehood/fumehood/internal/sandbox/image"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a store and of one layer.
const (
	DefaultMaxSize = 5 << 30    // bytes of all layers
	MaxStored      = 200        // of all layers
	MaxFiles       = 250_000    // of one layer
	MaxBytes       = 1536 << 20 // of one layer's files
	MaxInputs      = 100_000    // of one layer: more than the kernel reports, with the directories above
	MaxLayers      = 16         // with one set-up key; those that were not used for longest go
)

// Version is the version of the format. It belongs into keys.
const Version = "fumehood.layer/v2"

// Codes of the *proposal.StopErrors of this package. None of them stops a run.
const (
	CodeStore   = "layers.store"   // the directory cannot be used
	CodeInvalid = "layers.invalid" // a layer is not what its name says
	CodeWrite   = "layers.write"   // a layer cannot be written
	CodeUnknown = "layers.unknown" // it is not known what decides what set-up leaves
	CodeReads   = "layers.reads"   // set-up read too many files to list them
	CodeChanged = "layers.changed" // the workspace changed while set-up ran
	CodeFiles   = "layers.files"   // set-up left what a layer cannot hold
)

const (
	block         = 4096
	suffix        = ".layer"
	making        = "making-"
	maxInputBytes = 16 << 20
	maxSize       = MaxBytes + MaxFiles*2*block // of a file
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
		return nil, &proposal.StopError{Code: CodeStore,
			Message: fmt.Sprintf("cannot use the directory %q for layers", dir),
			Hint:    "use a directory that only this user can enter", Err: err}
	}
	lease.Sweep(dir, making, (*lease.Dir).Remove)
	return &Store{dir: dir, max: cmp.Or(max, DefaultMaxSize)}, nil
}

// An Input is a path of the workspace, and what set-up learned of it. What a State says is the
// caller's affair; it has no line feed.
type Input struct{ Path, State string }

// encodeInputs returns inputs as a layer has them.
func encodeInputs(inputs []Input) ([]byte, error) {
	var b []byte
	for i, in := range inputs {
		if i > 0 && inputs[i-1].Path >= in.Path || strings.Contains(in.State, "\n") {
			return nil, errors.New("inputs that are not sorted, or not one line each")
		}
		b = fmt.Appendf(b, "%s %s\n", strconv.Quote(in.Path), in.State)
	}
	if len(inputs) == 0 || len(inputs) > MaxInputs || len(b) > maxInputBytes-block {
		return nil, fmt.Errorf("set-up has %d inputs of the workspace", len(inputs))
	}
	for len(b)%block != 0 {
		b = append(b, '\n')
	}
	return b, nil
}

// decodeInputs is the inverse of encode.
func decodeInputs(data []byte) (inputs []Input, err error) {
	for line := range strings.SplitSeq(strings.TrimRight(string(data), "\n"), "\n") {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil || len(inputs) == MaxInputs {
			return nil, errors.New("invalid inputs")
		}
		name, _ := strconv.Unquote(quoted)
		inputs = append(inputs, Input{name, strings.TrimPrefix(line[len(quoted):], " ")})
	}
	if again, err := encodeInputs(inputs); err != nil || !bytes.Equal(again, data) {
		return nil, errors.New("invalid inputs")
	}
	return inputs, nil
}

// layerKey returns the key of a layer.
func layerKey(setup string, inputs []byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", Version, setup)
	sum.Write(inputs)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// An Info describes a layer.
type Info struct {
	Schema string    `json:"schema"`
	Setup  string    `json:"setup"`
	Key    string    `json:"key"`    // of Setup and the inputs
	Digest string    `json:"digest"` // of the image
	Size   int64     `json:"size"`   // of the image
	Inputs int64     `json:"inputs"` // size of the inputs
	Run    string    `json:"run"`    // the run that made it
	Made   time.Time `json:"made"`
	// Private means that only a temporary store may hold it.
	Private bool `json:"private,omitempty"`
}

// fileSize returns the size of the layer's file.
func (i Info) fileSize() int64 { return i.Size + i.Inputs + block }

// A SetupLayer is a layer that was verified and is in use until Close.
type SetupLayer struct {
	Info
	// File begins with the image. It is what was verified, whatever happens to its name, and
	// must only be read.
	File *os.File
}

// Close ends the use of a layer. A nil Layer is not in use.
func (l *SetupLayer) Close() error {
	if l == nil {
		return nil
	}
	return l.File.Close()
}

func invalidLayerError(key, why string, err error) error {
	return &proposal.StopError{Code: CodeInvalid,
		Message: fmt.Sprintf("the layer for %.19s… is not used: %s", key, why),
		Hint:    "it was removed, and set-up runs", Err: err}
}

// parseKeyDigits returns the digits of a key, "sha256:" and 64 digits.
func parseKeyDigits(key string) (string, error) {
	d, ok := strings.CutPrefix(key, "sha256:")
	if b, err := hex.DecodeString(d); !ok || err != nil || len(b) != sha256.Size || d != strings.ToLower(d) {
		return "", &proposal.StopError{Code: CodeInvalid, Message: fmt.Sprintf("invalid key %q", key),
			Hint: "use a key of the form sha256:HEX"}
	}
	return d, nil
}

// fileName returns the name of a layer's file.
func fileName(setup, key string) (string, error) {
	s, err := parseKeyDigits(setup)
	k, errKey := parseKeyDigits(key)
	return s + "-" + k + suffix, cmp.Or(err, errKey)
}

// parseName returns the keys in the name of a layer's file.
func parseName(name string) (setup, key string, ok bool) {
	s, k, _ := strings.Cut(strings.TrimSuffix(name, suffix), "-")
	setup, key = "sha256:"+s, "sha256:"+k
	again, err := fileName(setup, key)
	return setup, key, err == nil && again == name
}

// A Matcher reports whether a workspace has inputs, which are untrusted.
type Matcher func(inputs []Input) (bool, error)

// Find returns the layer that was used last of those with the set-up key whose inputs match
// accepts, or nil if there is none. It reads the whole file. A nil Store has none. A layer that
// is not valid does not hide another one; an error and a layer may be returned.
func (s *Store) Find(setup string, match Matcher) (found *SetupLayer, err error) {
	if s == nil {
		return nil, nil
	}
	if _, err := parseKeyDigits(setup); err != nil {
		return nil, err
	}
	paths, err := s.listFiles(setup)
	for _, path := range paths {
		l, invalid := s.useLayer(path, match)
		err = errors.Join(err, invalid)
		if l != nil {
			return l, err
		}
	}
	return nil, err
}

// Get returns the layer with these keys, or nil if there is none.
func (s *Store) Get(setup, key string) (*SetupLayer, error) {
	name, err := fileName(setup, key)
	if err != nil {
		return nil, err
	}
	return s.useLayer(filepath.Join(s.dir, name), func([]Input) (bool, error) { return true, nil })
}

// listFiles returns the files of layers with the set-up key, the last used first, and at most MaxLayers.
func (s *Store) listFiles(setup string) ([]string, error) {
	files, err := os.ReadDir(s.dir)
	return namesOf(s.dir, files, setup), err
}

func namesOf(dir string, files []fs.DirEntry, setup string) (paths []string) {
	used := map[string]time.Time{}
	for _, f := range files {
		if of, _, ok := parseName(f.Name()); !ok || of != setup {
			continue
		}
		if info, err := f.Info(); err == nil {
			path := filepath.Join(dir, f.Name())
			paths, used[path] = append(paths, path), info.ModTime()
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(used[b].Compare(used[a]), cmp.Compare(a, b)) })
	return paths[:min(len(paths), MaxLayers)]
}

// useLayer returns the layer at path if match accepts its inputs.
func (s *Store) useLayer(path string, match Matcher) (*SetupLayer, error) {
	l, err := openLayer(path)
	setup, key, _ := parseName(filepath.Base(path))
	var inputs []Input
	if err == nil {
		inputs, err = l.readInputs(s, setup, key)
	}
	accepted := false
	if err == nil {
		var cannot error
		if accepted, cannot = match(inputs); cannot != nil || !accepted {
			return nil, errors.Join(cannot, l.File.Close())
		}
		err = l.verifyImage()
	}
	if err != nil && l != nil {
		_ = l.File.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EWOULDBLOCK): // the second is removing it
		return nil, nil
	case err != nil:
		return nil, invalidLayerError(key, err.Error(), os.Remove(path))
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the time of the last use: see Prune
	return l, nil
}

// readInputs returns the inputs of a layer that must have these keys.
func (l *SetupLayer) readInputs(s *Store, setup, key string) ([]Input, error) {
	if err := l.checkUsable(s, setup, key); err != nil {
		return nil, err
	}
	return readInputs(l.File, l.Info)
}

// readInputs returns the inputs of a layer, and verifies that they are those of its key.
func readInputs(file *os.File, i Info) ([]Input, error) {
	data := make([]byte, i.Inputs)
	if _, err := file.ReadAt(data, i.Size); err != nil {
		return nil, err
	}
	if layerKey(i.Setup, data) != i.Key {
		return nil, errors.New("its inputs were changed")
	}
	return decodeInputs(data)
}

// openLayer opens and locks a layer, and reads what it says of itself.
func openLayer(path string) (*SetupLayer, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	l := &SetupLayer{File: file}
	if err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		err = checkOwner(file)
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

// checkOwner returns an error if another user can change file.
func checkOwner(file *os.File) error {
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
	if !info.Mode().IsRegular() || info.Size() < 3*block || info.Size()%block != 0 || info.Size() > maxSize {
		return i, errors.New("it was truncated, or is not a layer")
	}
	data := make([]byte, block)
	if _, err := file.ReadAt(data, info.Size()-block); err != nil {
		return i, err
	}
	if err := strictjson.Decode(data, &i); err != nil || i.Schema != Version || !runID.MatchString(i.Run) {
		return Info{}, errors.New("it was truncated, or is not a layer")
	}
	if i.Size < block || i.Size > maxSize || i.Inputs < block || i.Inputs > maxInputBytes ||
		i.fileSize() != info.Size() {
		return Info{}, errors.New("its size is not what it says")
	}
	return i, nil
}

// checkUsable returns an error unless a layer for key in s can be the one that i describes.
func (i Info) checkUsable(s *Store, setup, key string) error {
	switch {
	case i.Setup != setup || i.Key != key:
		return errors.New("it was made for another set-up")
	case i.Private && s.temporary == nil:
		return errPrivate
	}
	return nil
}

var errPrivate = errors.New("it is private to the run that made it")

// verifyImage checks that the image is what the layer says.
func (l *SetupLayer) verifyImage() error {
	sum := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(l.File, 0, l.Size),
		make([]byte, 1<<20)); err != nil {
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
	inputs []byte
	dir    *lease.Dir
	writer *image.Writer
}

// Make begins the layer of a set-up with i's Setup, Run and Private, and these inputs.
func (s *Store) Make(i Info, inputs []Input) (*Maker, error) {
	if _, err := parseKeyDigits(i.Setup); err != nil {
		return nil, err
	}
	data, err := encodeInputs(inputs)
	if err != nil {
		return nil, cannotWrite(err)
	}
	i = Info{Schema: Version, Setup: i.Setup, Key: layerKey(i.Setup, data), Inputs: int64(len(data)), Run: i.Run,
		Private: i.Private, Made: time.Now().UTC().Truncate(time.Second)}
	if err := i.checkUsable(s, i.Setup, i.Key); err != nil {
		return nil, cannotWrite(err)
	}
	dir, err := lease.Make(s.dir, making)
	if err != nil {
		return nil, cannotWrite(err)
	}
	m := &Maker{store: s, dir: dir, inputs: data, info: i}
	if m.writer, err = image.Create(m.imagePath(),
		image.Options{MaxFiles: MaxFiles, MaxBytes: min(maxSize-block-maxInputBytes, s.max)}); err != nil {
		return nil, errors.Join(err, m.Abort())
	}
	return m, nil
}

func (m *Maker) imagePath() string { return filepath.Join(m.dir.Path, "image") }

func cannotWrite(err error) error {
	return &proposal.StopError{Code: CodeWrite, Message: "cannot write a layer",
		Hint: "free some space, or run fumehood cache --prune", Err: err}
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
	name, err := fileName(m.info.Setup, m.info.Key)
	if err == nil {
		err = m.writeTrailer()
	}
	if err == nil {
		err = m.store.makeRoom(m.info.Setup)
	}
	if err == nil {
		err = m.store.shrinkTo(m.store.max - m.info.fileSize())
	}
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, m.imagePath(), unix.AT_FDCWD, filepath.Join(m.store.dir, name),
			unix.RENAME_NOREPLACE)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return i, cannotWrite(err)
	}
	return m.info, syncDir(m.store.dir)
}

// makeRoom removes the layers with a set-up key that leave no place for one more.
func (s *Store) makeRoom(setup string) error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	used := namesOf(s.dir, files, setup)
	for _, f := range files {
		path := filepath.Join(s.dir, f.Name())
		if of, _, ok := parseName(f.Name()); ok && of == setup &&
			!slices.Contains(used[:min(len(used), MaxLayers-1)], path) {
			if _, err := removeUnused(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTrailer appends the inputs and what the layer says of itself, and brings the file to disk.
func (m *Maker) writeTrailer() error {
	data, err := json.Marshal(m.info)
	if err != nil || len(data) > block {
		return errors.Join(err, errors.New("too much about a layer"))
	}
	f, err := os.OpenFile(m.imagePath(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Concat(m.inputs, data, bytes.Repeat([]byte(" "), block-len(data))))
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
	l, err := openLayer(path)
	if l != nil {
		e.Info = l.Info
		_ = l.File.Close()
	}
	setup, key, named := parseName(filepath.Base(path))
	if err == nil && (!named || e.Setup != setup || e.Key != key) {
		err = errors.New("it was made for another set-up")
	}
	if err != nil {
		if !named {
			setup, key = "", "sha256:"+strings.TrimSuffix(filepath.Base(path), suffix)
		}
		e.Info, e.Problem = Info{Setup: setup, Key: key, Size: info.Size()}, err.Error()
	}
	return e
}

// Prune removes the layers that were last used before the time, those that were not used for
// longest as long as all are larger than size bytes, and what cannot be a layer. A layer in use
// stays. It returns what was removed.
func (s *Store) Prune(size int64, before time.Time) (removed []Entry, err error) {
	removed, _, err = s.pruneLayers(size, MaxStored, before)
	return removed, err
}

// pruneLayers is Prune, as long as there are more layers than count, too. It returns how many bytes are left.
func (s *Store) pruneLayers(size int64, count int, before time.Time) (removed []Entry, left int64, err error) {
	list, err := s.List()
	for _, e := range list {
		left += e.fileSize()
	}
	for _, e := range slices.Backward(list) {
		if left <= size && len(list)-len(removed) <= count && !e.Used.Before(before) && e.Problem == "" {
			continue
		}
		gone, err := removeUnused(e.path)
		if err != nil {
			return removed, left, err
		}
		if gone {
			removed = append(removed, e)
			left -= e.fileSize()
		}
	}
	return removed, left, err
}

// shrinkTo removes layers until at most size bytes are left, and place for one more layer.
func (s *Store) shrinkTo(size int64) error {
	if size < 0 {
		return fmt.Errorf("the layer is larger than the limit of %d bytes", s.max)
	}
	_, left, err := s.pruneLayers(size, MaxStored-1, time.Time{})
	if err == nil && left > size {
		return errors.New("other layers are in use, and there is no room for another")
	}
	return err
}

// removeUnused removes a layer unless a process uses it.
func removeUnused(path string) (gone bool, err error) {
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
