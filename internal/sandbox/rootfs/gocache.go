// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	goCacheTime  = 5 * time.Minute // to compile the standard library
	keptGoCaches = 3
	goCacheName  = "go-std"
	unfinished   = ".new-"
)

// lastUse is in the future, so that the go command neither renews times of files, for which
// an overlay copies them, nor removes what was not used for some days.
var lastUse = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// GoCache returns a build cache with the standard library, compiled by the go command
// of r, in the directory cache, or "" if r has none. If there is none yet, it is compiled on
// the host by the toolchain's owner, from the toolchain's own sources and with an empty
// environment, which takes up to a minute. Only a toolchain that root and the owners of s
// alone can replace is used: see Search. notice is called before long work.
func (r Root) GoCache(ctx context.Context, s Search, cache string, notice func(string)) (string, error) {
	program := r.Lookup("go")
	if program == "" || r.Kind != "host" || cache == "" {
		return "", nil
	}
	g, err := r.goToolchain(s, program)
	if err != nil {
		return "", err
	}
	all := filepath.Join(cache, goCacheName)
	dir := filepath.Join(all, g.key)
	if !isDir(dir, ".") {
		if !showsRootsFiles(cache) {
			return "", nil
		}
		notice("compiling Go's standard library once, for all runs; this usually takes 10 s to 1 min (cache: false in .github/fumehood.yml switches it off)")
		if err := g.fillCache(ctx, all, dir); err != nil {
			return "", err
		}
	}
	if no := s.checkTrusted(dir); no != nil { // a cache that others can write to is not the toolchain's
		return "", errors.New(no.reason)
	}
	if err := markUsed(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// A goToolchain compiles its standard library.
type goToolchain struct {
	program  string // the host's path, without links
	path     string // PATH inside, so that cgo finds the same compiler
	uid, gid uint32
	key      string // of everything that determines the result
}

func (r Root) goToolchain(s Search, program string) (g goToolchain, err error) {
	if g.program, err = filepath.EvalSymlinks(r.hostPath(program)); err != nil {
		return g, err
	}
	root := filepath.Dir(filepath.Dir(g.program))
	for _, part := range []string{g.program, filepath.Join(root, "src"), filepath.Join(root, "pkg/tool")} {
		if no := s.checkTrusted(part); no != nil {
			return g, errors.New(no.reason)
		}
	}
	info, err := os.Stat(g.program)
	if err != nil {
		return g, err
	}
	stat := info.Sys().(*syscall.Stat_t)
	g.path, g.uid, g.gid = r.Path, stat.Uid, stat.Gid
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", readSmall(filepath.Join(root, "VERSION")))
	for _, path := range []string{g.program, r.hostPath(r.Lookup("gcc"))} {
		hashEntry(sum, path)
	}
	g.key = hex.EncodeToString(sum.Sum(nil)[:16])
	return g, nil
}

// fillCache fills dir, below all.
func (g goToolchain) fillCache(ctx context.Context, all, dir string) error {
	if err := os.MkdirAll(all, 0o755); err != nil {
		return err
	}
	pruneCaches(all)
	made, err := os.MkdirTemp(all, unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	if err := errors.Join(os.Chmod(made, 0o755), os.Chown(made, int(g.uid), int(g.gid)),
		g.buildStandardLibrary(ctx, made), setOwnerAndTimes(made)); err != nil {
		return fmt.Errorf("cannot compile Go's standard library: %w", err)
	}
	if err := os.Rename(made, dir); err != nil && !isDir(dir, ".") { // another process may have made it
		return err
	}
	return nil
}

func (g goToolchain) buildStandardLibrary(ctx context.Context, cache string) error {
	ctx, cancel := context.WithTimeout(ctx, goCacheTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.program, "build", "std")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + g.path, "HOME=" + cache, "TMPDIR=" + cache, "GOCACHE=" + cache, "GOENV=off",
		"GOTOOLCHAIN=local", "GOWORK=off", "GOPROXY=off", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: g.uid, Gid: g.gid}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, out)
	}
	return nil
}

// setOwnerAndTimes gives this process's user everything in dir, and sets the times of its files.
func setOwnerAndTimes(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() && !e.Type().IsRegular() {
			return os.Remove(path)
		}
		mode := fs.FileMode(0o644)
		if e.IsDir() {
			mode = 0o755
		}
		return errors.Join(os.Lchown(path, os.Geteuid(), os.Getegid()), os.Chmod(path, mode),
			os.Chtimes(path, lastUse, lastUse))
	})
}

// markUsed marks dir as used and as trimmed not long ago. Otherwise the go command would look
// for what to remove, which takes a second in the sandbox.
func markUsed(dir string) error {
	now := time.Now()
	info, err := os.Stat(filepath.Join(dir, "trim.txt"))
	if err == nil && now.Sub(info.ModTime()) < 6*time.Hour && info.ModTime().Before(now) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(dir), unfinished)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(now.Unix(), 10))
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, "trim.txt"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// pruneCaches removes what an earlier process left unfinished, and the caches that were used
// least recently.
func pruneCaches(all string) {
	entries, _ := os.ReadDir(all)
	type cache struct {
		path string
		used time.Time
	}
	var caches []cache
	for _, e := range entries {
		path := filepath.Join(all, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if trimmed, err := os.Stat(filepath.Join(path, "trim.txt")); err == nil {
			info = trimmed
		}
		if e.Name()[0] == '.' {
			if time.Since(info.ModTime()) > time.Hour {
				_ = os.RemoveAll(path)
			}
			continue
		}
		caches = append(caches, cache{path, info.ModTime()})
	}
	slices.SortFunc(caches, func(a, b cache) int { return b.used.Compare(a.used) })
	for _, c := range caches[min(len(caches), keptGoCaches-1):] {
		_ = os.RemoveAll(c.path)
	}
}

// GoCacheInside is where the go command looks for its build cache in a sandbox. What it
// writes there is thrown away.
const GoCacheInside = "/home/fumehood/.cache/go-build"

// UserGoCache returns this user's own Go build cache, or "" if a sandbox cannot show it. It
// may hold what other programs and projects compiled: it is for demonstrations.
func UserGoCache() string {
	dir := os.Getenv("GOCACHE")
	if user, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(user, "go-build")
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(dir) || !showsRootsFiles(dir) {
		return ""
	}
	return dir
}

// showsRootsFiles reports whether the unprivileged user of the sandbox can read root's
// files on the file system of dir. Others, such as those of the network, may not show them.
func showsRootsFiles(dir string) bool {
	var in unix.Statfs_t
	return unix.Statfs(dir, &in) == nil &&
		slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}, in.Type)
}
