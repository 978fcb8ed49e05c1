// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lease"
)

// keptBuilds is how many builds are kept in the cache; an installation has 36 MB.
const keptBuilds = 5

// errSourceChanged means that the build may not correspond to any version of the source.
var errSourceChanged = errors.New("the source changed while it was built")

// findCached returns the installation of our own sources, from the cache if possible.
func findCached(ctx context.Context, o Options) (Runsc, error) {
	root, err := sourceTree()
	if err != nil {
		return Runsc{}, missingError("no " + runscName + " is next to this program, and " + err.Error())
	}
	builds, err := buildsDir(o.CacheDir)
	if err != nil {
		return Runsc{}, err
	}
	for tries := 1; ; tries++ {
		r, err := findCurrent(ctx, o, root, builds)
		again := errors.Is(err, errSourceChanged) || errors.Is(err, errPruned)
		if !again || tries == 3 {
			return r, err
		}
	}
}

// findCurrent returns the verified installation of the sources as they are now.
func findCurrent(ctx context.Context, o Options, root, builds string) (Runsc, error) {
	dir, err := ensureBuild(ctx, o, root, builds)
	if err != nil {
		return Runsc{}, err
	}
	held, err := holdDir(ctx, dir, holdTries)
	if err != nil {
		return Runsc{}, err
	}
	r, err := verifyInstallation(dir, "", o.Remember)
	r.held = held
	return r, err
}

// errPruned means that another process removed an installation that was just found.
var errPruned = missingError("another process removed the installation from the cache")

// holdTries is the number of attempts of hold, a tenth of a second apart.
const holdTries = 50

// holdDir protects dir from prune while the file is open. If dir cannot be locked, holdDir returns
// no file and verify reports what is wrong with it. Any user can lock what any user can read,
// but a lock that is never released does not block callers, because prune cannot take dir
// either.
func holdDir(ctx context.Context, dir string, tries int) (*os.File, error) {
	for range tries {
		file, err := lease.Share(dir)
		switch {
		case err == nil:
			return file, nil
		case errors.Is(err, os.ErrNotExist):
			return nil, errPruned
		case !errors.Is(err, lease.ErrHeld):
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil, nil
}

// ensureBuild returns the directory in builds for the sources as they are now.
func ensureBuild(ctx context.Context, o Options, root, builds string) (string, error) {
	key, err := sourceKey(root, hostPlatform())
	if err != nil {
		return "", missingError("cannot read this program's source: " + err.Error())
	}
	dir := filepath.Join(builds, key)
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return dir, nil // verify reports any problem
	}
	if !o.Build {
		return "", missingError("no " + runscName + " is next to this program or in the cache " + builds)
	}
	return dir, buildOnce(ctx, o, root, key, builds)
}

// systemCache is root's cache: the sentry runs as an unprivileged user, who cannot enter /root.
const systemCache = "/var/cache/fumehood"

// CacheDir returns the cache of this program: FUMEHOOD_CACHE, or else /var/cache/fumehood
// for root and a directory of the user's cache for others.
func CacheDir() (string, error) { return cacheDir("") }

func cacheDir(explicit string) (string, error) {
	if explicit == "" {
		explicit = os.Getenv("FUMEHOOD_CACHE")
	}
	if explicit != "" {
		return filepath.Abs(explicit)
	}
	if os.Geteuid() == 0 {
		return systemCache, nil
	}
	user, err := os.UserCacheDir()
	return filepath.Join(user, "fumehood"), err
}

// buildsDir returns the directory in which the cache keeps installations. It must be as
// trustworthy as they are: anyone who can write to it can replace them.
func buildsDir(explicit string) (string, error) {
	cache, err := cacheDir(explicit)
	if err != nil {
		return "", missingError("cannot find the user's cache (set FUMEHOOD_CACHE): " + err.Error())
	}
	dir := filepath.Join(cache, "runsc")
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", missingError(err.Error())
	}
	return dir, checkOwner(dir, dir, info)
}

// makeInstallation builds an installation for the cache; tests replace it with a faster one.
var makeInstallation = buildInstallation

// buildOnce builds into the cache, unless another process has done so before we get the lock.
// Other processes see either a complete installation or none.
func buildOnce(ctx context.Context, o Options, root, key, builds string) error {
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	if err := makeBuildsDir(builds); err != nil {
		return buildFailure("cannot make the cache", err)
	}
	if err := checkReach(builds); err != nil {
		return err // before a build that could not be started
	}
	unlock, err := lockFile(ctx, filepath.Join(builds, "lock"), progress)
	if err != nil {
		return buildFailure("cannot lock the cache", err)
	}
	defer unlock()
	dir := filepath.Join(builds, key)
	if _, err := os.Lstat(dir); err == nil {
		return nil
	}
	scratch, err := os.MkdirTemp(builds, ".new-")
	if err != nil {
		return buildFailure("cannot make the cache", err)
	}
	defer os.RemoveAll(scratch)
	if err := makeInstallation(ctx, root, key, scratch, runtime.GOARCH, localFlags, progress); err != nil {
		return err
	}
	if now, err := sourceKey(root, hostPlatform()); err != nil || now != key {
		return buildFailure("cannot install the build", errSourceChanged)
	}
	if err := os.Rename(scratch, dir); err != nil {
		return buildFailure("cannot install the build", err)
	}
	pruneBuilds(builds)
	return nil
}

// makeBuildsDir makes builds and the cache directory above it accessible, whatever the umask
// is; existing directories keep their modes.
func makeBuildsDir(builds string) error {
	cache := filepath.Dir(builds)
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		return err
	}
	for _, dir := range []string{cache, builds} {
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// lockFile waits for the exclusive lock on path. The kernel releases it when this process dies.
// If the cache is removed meanwhile, the locked file is no longer the one that other
// processes lock; lock then starts again.
func lockFile(ctx context.Context, path string, progress func(string)) (unlock func(), err error) {
	for {
		file, err := lockOpened(ctx, path, progress)
		if err != nil {
			return nil, err
		}
		locked, err := file.Stat()
		named, gone := os.Lstat(path)
		if err == nil && gone == nil && os.SameFile(locked, named) {
			return func() { file.Close() }, nil
		}
		if file.Close(); err != nil {
			return nil, err
		}
	}
}

func lockOpened(ctx context.Context, path string, progress func(string)) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600) // opening permits locking
	if err != nil {
		return nil, err
	}
	for reported := false; ; reported = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, err
		}
		if !reported {
			progress("waiting for another process that builds " + runscName)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pruneBuilds removes the oldest builds and what killed processes left behind, but nothing that a
// process is using. Processes of versions that do not lock what they use have a day. The
// caller holds the cache's lock. Errors are ignored: they only cost disk space.
func pruneBuilds(builds string) {
	entries, err := os.ReadDir(builds)
	if err != nil {
		return
	}
	var old []os.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.IsDir() {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(a, b os.FileInfo) int {
		return cmp.Compare(b.ModTime().UnixNano(),
			a.ModTime().UnixNano())
	})
	for i, info := range old {
		if i >= keptBuilds && time.Since(info.ModTime()) > 24*time.Hour {
			if d, err := lease.Take(filepath.Join(builds, info.Name())); err == nil {
				_ = d.Remove()
			}
		}
	}
}
