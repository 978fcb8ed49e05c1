// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const persistHint = "give the checkout step\n" +
	"  - uses: actions/checkout@…\n" +
	"    with:\n" +
	"      persist-credentials: false"

// A search looks for credentials in the git directories of a work tree.
type search struct {
	root   *os.Root // the work tree
	dir    string   // its absolute path
	getenv func(string) string
	read   int // included files read so far
}

const (
	maxConfig   = 1 << 20 // bytes of one file
	maxIncludes = 64
)

// gitDir checks every place in one .git directory where git or actions/checkout
// would keep a credential.
func (s *search) gitDir(folder string) error {
	if _, err := s.root.Lstat(path.Join(folder, "commondir")); !errors.Is(err, fs.ErrNotExist) {
		return newStopError(CodeNoCheckout, "check out into a separate directory", err,
			"%q is a linked worktree, whose config is elsewhere", cutOutput(folder))
	}
	for _, name := range []string{"credentials", ".git-credentials"} {
		if _, err := s.root.Lstat(path.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) {
			return credentialError(path.Join(folder, name), "it contains passwords")
		}
	}
	for _, name := range []string{"config", "config.worktree"} {
		if err := s.checkConfigFile(path.Join(folder, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"FETCH_HEAD", "logs/HEAD"} {
		if err := s.checkFetchURLs(path.Join(folder, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"modules", "worktrees"} {
		if err := s.checkNestedDirs(path.Join(folder, name), 0); err != nil {
			return err
		}
	}
	return nil
}

// checkNestedDirs checks the git directories of submodules, which may be nested, and the
// configs of worktrees.
func (s *search) checkNestedDirs(folder string, depth int) error {
	entries, err := s.listFolder(folder)
	if err != nil || depth > 32 {
		return orDoubt(err, folder, depth > 32)
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		switch {
		case e.Name() == "config" || e.Name() == "config.worktree":
			if err := s.checkConfigFile(name); err != nil {
				return err
			}
		case e.Name() == "FETCH_HEAD":
			if err := s.checkFetchURLs(name); err != nil {
				return err
			}
		case e.Name() == "credentials" && !e.IsDir():
			return credentialError(name, "it contains passwords")
		case e.IsDir(): // a submodule may be named "objects" or "hooks"
			if err := s.checkNestedDirs(name, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *search) listFolder(folder string) ([]fs.DirEntry, error) {
	info, err := s.root.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.IsDir() {
		return nil, unreadableError(folder, err)
	}
	entries, err := fs.ReadDir(s.root.FS(), folder)
	if err != nil {
		return nil, unreadableError(folder, err)
	}
	return entries, nil
}

func orDoubt(err error, name string, doubted bool) error {
	if err == nil && doubted {
		return unreadableError(name, errors.New("directories are nested too deeply"))
	}
	return err
}

// checkConfigFile checks a config file of the work tree. A missing file is not an error.
func (s *search) checkConfigFile(name string) error {
	data, err := s.readRegularFile(name)
	if err != nil || data == nil {
		return err
	}
	return s.judgeSettings(name, filepath.Dir(filepath.Join(s.dir, name)), string(data))
}

// readRegularFile reads a regular file of the work tree. It returns nil if the file does not exist.
func (s *search) readRegularFile(name string) ([]byte, error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, unreadableError(name, err)
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, unreadableError(name, err)
	}
	return readAll(f, name)
}

func readAll(f *os.File, name string) ([]byte, error) {
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, unreadableError(name, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil || len(data) > maxConfig {
		return nil, unreadableError(name, err)
	}
	return append([]byte{}, data...), nil
}

// checkFetchURLs looks for a password in the URLs that git recorded for a fetch.
func (s *search) checkFetchURLs(name string) error {
	data, err := s.readRegularFile(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		if hasUserinfo(line) {
			return credentialError(name, "it contains user information in an address")
		}
	}
	return nil
}

// leftBehind reports whether name is a file that other actions leave in a work tree.
func leftBehind(name string) bool {
	base := path.Base(name)
	creds, _ := path.Match("gha-creds-*.json", base)
	return creds || slices.Contains([]string{".netrc", "_netrc", ".git-credentials"}, base)
}

// credentialError returns the error for a credential that was found. It never quotes a value.
func credentialError(name, why string) *proposal.StopError {
	return newStopError(CodeCredentials, persistHint, nil,
		"the checkout contains a credential that commands could read: %s: %s", cutOutput(name), why)
}

// unreadableError returns the error for a file that cannot be read, and so may hold a credential.
func unreadableError(name string, err error) error {
	var stopped *proposal.StopError
	if errors.As(err, &stopped) {
		return err
	}
	return newStopError(CodeNoCheckout, "check out with actions/checkout, in a separate step", err,
		"cannot determine whether %q contains a credential", cutOutput(name))
}
