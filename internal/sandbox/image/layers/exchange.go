// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/kit/exchange"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// CodeExchange is the code of the *proposal.StopErrors of Import and Export. None stops a run.
const CodeExchange = "layers.exchange"

const temporary = "layers-of-run-"

// RemoveAbandoned removes the stores of OpenTemporary that killed processes left in parent.
func RemoveAbandoned(parent string) { lease.Sweep(parent, temporary, (*lease.Dir).Remove) }

// OpenTemporary makes an empty store in the directory parent, of DefaultMaxSize, which Close
// removes. It also calls Sweep.
func OpenTemporary(parent string) (*Store, error) {
	err := os.MkdirAll(parent, 0o755)
	var dir *lease.Dir
	if err == nil {
		RemoveAbandoned(parent)
		dir, err = lease.Make(parent, temporary)
	}
	if err != nil {
		return nil, &proposal.StopError{Code: CodeStore,
			Message: fmt.Sprintf("cannot make a directory for layers in %q", parent),
			Hint:    "free some space, or check the permissions of the directory", Err: err}
	}
	return &Store{dir: dir.Path, max: DefaultMaxSize, temporary: dir}, nil
}

// Close removes a store of OpenTemporary. A layer in use stays usable. Others stay as they are.
func (s *Store) Close() error {
	if s == nil || s.temporary == nil {
		return nil
	}
	return s.temporary.Remove()
}

func cannotExchange(verb, dir string, err error) error {
	return &proposal.StopError{Code: CodeExchange, Message: fmt.Sprintf("cannot %s a layer in %q", verb, dir),
		Hint: "remove the file from the directory and from the cache that it was restored from", Err: err}
}

// maxListed is how many files of a directory Import looks at.
const maxListed = 10_000

// Import copies the layer that was used last of those in dir with the set-up key whose inputs match
// accepts to s, unless s has it or dir has none. Others may write to dir at the same time: no link
// is followed, only a regular file of the right name, a layer's size and with this key is copied,
// and Find verifies the copy, which they cannot change.
func (s *Store) Import(dir, setup string, match Matcher) error {
	if _, err := parseKeyDigits(setup); err != nil {
		return err
	}
	d, err := exchange.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return cannotExchange("use", dir, err)
	}
	defer d.Close()
	files, err := d.ReadEntries(maxListed)
	for _, path := range namesOf(dir, files, setup) {
		copied, failed := s.importFrom(d, filepath.Base(path), match)
		if copied {
			return nil
		}
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = cannotExchange("use", dir, failed)
		}
	}
	return err
}

func (s *Store) importFrom(d *exchange.Dir, name string, match Matcher) (copied bool, err error) {
	path := filepath.Join(s.dir, name)
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	from, err := d.Open(name)
	if err != nil {
		return false, err
	}
	defer from.Close()
	i, err := readInfo(from)
	if err == nil && i.Private {
		err = errPrivate
	}
	setup, key, _ := parseName(name)
	if err == nil {
		err = i.checkUsable(s, setup, key)
	}
	var inputs []Input
	if err == nil {
		inputs, err = readInputs(from, i)
	}
	if err != nil {
		return false, err
	}
	if same, err := match(inputs); err != nil || !same {
		return false, err
	}
	if err := s.shrinkTo(s.max - i.fileSize()); err != nil {
		return false, err
	}
	return true, s.copyIn(from, i.fileSize(), path)
}

// copyIn copies the first size bytes of from to path, which appears complete or not at all.
func (s *Store) copyIn(from *os.File, size int64, path string) error {
	dir, err := lease.Make(s.dir, making)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Remove() }()
	name := filepath.Join(dir.Path, "image")
	into, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(copyAll(into, from, size), into.Close()); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE); !errors.Is(err,
		fs.ErrExist) {
		return err
	}
	return nil
}

// copyAll copies size bytes, through a buffer that does not depend on from.
func copyAll(into io.Writer, from *os.File, size int64) error {
	n, err := io.Copy(into, io.NewSectionReader(from, 0, size))
	if err == nil && n != size {
		err = errors.New("it was truncated meanwhile")
	}
	return err
}

// Export copies the layer with i's keys from s to dir, for the owner of dir. A file of its name there
// is replaced, and appears complete or not at all.
func (s *Store) Export(i Info, dir string) error {
	name, err := fileName(i.Setup, i.Key)
	if err != nil {
		return err
	}
	l, err := openLayer(filepath.Join(s.dir, name))
	if l != nil {
		defer l.File.Close()
	}
	if err == nil && l.Private {
		err = errPrivate
	}
	var d *exchange.Dir
	if err == nil {
		d, err = exchange.Open(dir)
	}
	if err == nil {
		defer d.Close()
		err = d.Put(name, func(w io.Writer) error { return copyAll(w, l.File, l.fileSize()) })
	}
	if err != nil {
		return cannotExchange("leave", dir, err)
	}
	return nil
}
