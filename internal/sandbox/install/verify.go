// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Runsc is a verified installation.
type Runsc struct {
	Path      string // fumehood-runsc
	Init      string // the guest's first process
	Version   string // of gVisor
	Digest    string // "sha256:…" of fumehood-runsc
	GoVersion string // that compiled it
	Prewarmed bool
	// PrewarmerNote says what is lost without the prewarmer and how to get it;
	// empty if Prewarmed.
	PrewarmerNote string

	seen []seenFile
	held *os.File // keeps an installation in the cache while this Runsc is reachable
}

// seenFile is a file's state when its digest was computed.
type seenFile struct {
	path string
	id   identity
}

// identity changes whenever a file's content may have changed: the kernel sets
// ctime on every write, and only root can set the clock back.
type identity struct {
	dev, ino uint64
	size     int64
	ctime    syscall.Timespec
}

// Files returns the names, relative to the directory of Path, of all that the installation consists
// of. A copy of them is an installation.
func (r Runsc) Files() []string {
	names := []string{manifestName}
	for _, s := range r.seen {
		name, _ := filepath.Rel(filepath.Dir(r.Path), s.path) // it is below
		names = append(names, name)
	}
	return names
}

// CheckUnchanged returns an error if any file of the installation was replaced or
// written to since Find returned it. It takes some microseconds, while computing
// all digests again takes milliseconds; call it before every start.
func (r Runsc) CheckUnchanged() error {
	if len(r.seen) == 0 {
		return badDigest(filepath.Dir(r.Path), "it was never verified")
	}
	for _, s := range r.seen {
		info, err := os.Lstat(s.path)
		if err != nil {
			return badDigest(filepath.Dir(r.Path), err.Error())
		}
		if fileIdentity(info) != s.id {
			return badDigest(filepath.Dir(r.Path), fmt.Sprintf("%q changed after it was verified", s.path))
		}
	}
	return nil
}

// verifyInstallation checks the installation in dir; if digest is not empty, its manifest must
// have it. remember is as in Options.
func verifyInstallation(dir, digest, remember string) (Runsc, error) {
	if err := checkFolders(dir); err != nil {
		return Runsc{}, err
	}
	if err := checkReach(dir); err != nil {
		return Runsc{}, err
	}
	m, err := readManifest(dir, digest)
	if err != nil {
		return Runsc{}, err
	}
	if err := checkSidecars(dir, m); err != nil {
		return Runsc{}, err
	}
	r := Runsc{
		Path: filepath.Join(dir, runscName), Init: filepath.Join(dir, initName),
		Version: m.GVisor, GoVersion: m.Go,
		Prewarmed: m.isPrewarmed(), PrewarmerNote: m.Prewarmer,
	}
	if r.seen, err = checkFiles(dir, m.Files, remember); err != nil {
		return Runsc{}, err
	}
	for _, f := range m.Files {
		if f.Name == runscName {
			r.Digest = "sha256:" + f.SHA256
		}
	}
	return r, checkBuild(dir)
}

// checkFiles computes all digests in parallel, that of hard links only once.
func checkFiles(dir string, files []manifestFile, remember string) ([]seenFile, error) {
	var work errgroup.Group
	seen := make([]seenFile, len(files))
	digests := map[identity]string{}
	for i, f := range files {
		path := filepath.Join(dir, f.Name)
		file, id, err := openVerified(dir, path, f)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		seen[i] = seenFile{path, id}
		if sum, ok := digests[id]; ok {
			if sum != f.SHA256 {
				return nil, badDigest(dir, fmt.Sprintf("%q does not have the digest in its manifest", f.Name))
			}
			continue
		}
		digests[id] = f.SHA256
		work.Go(func() error { return checkOnce(dir, file, checkedFile{id, f}, remember) })
	}
	return seen, work.Wait()
}

func openVerified(dir, path string, f manifestFile) (*os.File, identity, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, identity{}, badPermissions(dir, path, "is a symbolic link")
		}
		return nil, identity{}, badDigest(dir, "it is incomplete: "+err.Error())
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = badPermissions(dir, path, "is not a regular file")
	}
	if err == nil {
		err = checkOwner(dir, path, info)
	}
	if err == nil && info.Mode().Perm()&0o111 != 0o111 { // runsc ignores such a sidecar
		err = badPermissions(dir, path, fmt.Sprintf("is not executable by all (mode %04o)", info.Mode().Perm()))
	}
	if err == nil && info.Size() != f.Size {
		err = badDigest(dir, fmt.Sprintf("%q has %d bytes, its manifest says %d", f.Name, info.Size(), f.Size))
	}
	if err != nil {
		file.Close()
		return nil, identity{}, err
	}
	return file, fileIdentity(info), nil
}

// checked has the files whose digests this process has computed: a server makes many gates.
var checked sync.Map // checkedFile → nothing

type checkedFile struct {
	id identity
	manifestFile
}

// markerPath is the file in the directory remember that says that f was verified.
func (f checkedFile) markerPath(remember string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", f))
	return filepath.Join(remember, hex.EncodeToString(sum[:]))
}

// wasVerified reports whether f was verified before.
func (f checkedFile) wasVerified(remember string) bool {
	if _, known := checked.Load(f); known || remember == "" {
		return known
	}
	_, err := os.Lstat(f.markerPath(remember))
	return err == nil
}

// rememberVerified remembers that f was verified. Without it, it is verified again.
func (f checkedFile) rememberVerified(remember string) {
	checked.Store(f, nil)
	if remember != "" && os.MkdirAll(remember, 0o700) == nil {
		_ = os.WriteFile(f.markerPath(remember), nil, 0o600)
	}
}

// settledAfter is how old a ctime must be so that a later write changes it: a clock tick.
const settledAfter = time.Second

// checkOnce is checkDigest for a file that may be known already.
func checkOnce(dir string, file io.Reader, f checkedFile, remember string) error {
	if f.wasVerified(remember) {
		return nil
	}
	settled := time.Since(time.Unix(f.id.ctime.Unix())) > settledAfter
	err := checkDigest(dir, file, f.manifestFile)
	if err == nil && settled {
		f.rememberVerified(remember)
	}
	return err
}

func checkDigest(dir string, file io.Reader, f manifestFile) error {
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{file}, make([]byte, 256<<10)); err != nil {
		return badDigest(dir, fmt.Sprintf("cannot read %q: %v", f.Name, err))
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return badDigest(dir, fmt.Sprintf("%q does not have the digest in its manifest", f.Name))
	}
	return nil
}

// checkBuild reads from the binary itself what it was built from, without running
// it.
func checkBuild(dir string) error {
	info, err := buildinfo.ReadFile(filepath.Join(dir, runscName))
	if err != nil {
		return badVersion(dir, "cannot read what it was built from: "+err.Error())
	}
	if want := modulePath + "/cmd/" + runscName; info.Path != want {
		return badVersion(dir, fmt.Sprintf("it is %q, not %s", info.Path, want))
	}
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" && setting.Value != "0" {
			return badVersion(dir, "it was built with cgo")
		}
	}
	return checkModule(dir, info.Deps)
}

func checkModule(dir string, deps []*debug.Module) error {
	for _, dep := range deps {
		if dep.Path != "gvisor.dev/gvisor" {
			continue
		}
		if dep.Version != GVisorVersion || dep.Replace != nil {
			return badVersion(dir, fmt.Sprintf("gVisor %s (replaced: %t) is linked in, pinned is %s",
				dep.Version, dep.Replace != nil, GVisorVersion))
		}
		return nil
	}
	return badVersion(dir, "no gVisor is linked in")
}

func fileIdentity(info fs.FileInfo) identity {
	s := info.Sys().(*syscall.Stat_t)
	return identity{dev: s.Dev, ino: s.Ino, size: s.Size, ctime: s.Ctim}
}
