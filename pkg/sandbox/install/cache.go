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
)

// keptBuilds are left in the cache by a build; an installation has 36 MB.
const keptBuilds = 5

// errSourceChanged means that what was built may be of no version at all.
var errSourceChanged = errors.New("the source changed while it was built")

// cached returns the installation of our own sources, from the cache if it can.
func cached(ctx context.Context, o Options) (Runsc, error) {
	root, err := sourceTree()
	if err != nil {
		return Runsc{}, missing("no " + runscName + " lies beside this program, and " + err.Error())
	}
	builds, err := buildsDir(o.CacheDir)
	if err != nil {
		return Runsc{}, err
	}
	for tries := 1; ; tries++ {
		dir, err := ensure(ctx, o, root, builds)
		if errors.Is(err, errSourceChanged) && tries < 3 {
			continue
		}
		if err != nil {
			return Runsc{}, err
		}
		return verify(dir, "")
	}
}

// ensure returns the folder in builds for the sources as they are now.
func ensure(ctx context.Context, o Options, root, builds string) (string, error) {
	key, err := sourceKey(root, platform())
	if err != nil {
		return "", missing("cannot read this program's source: " + err.Error())
	}
	dir := filepath.Join(builds, key)
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return dir, nil // whatever it is, verify says
	}
	if !o.Build {
		return "", missing("no " + runscName + " lies beside this program or in the cache " + builds)
	}
	return dir, buildOnce(ctx, o, root, key, builds)
}

// systemCache is root's cache: the sentry runs as nobody, who may not enter /root.
const systemCache = "/var/cache/fumehood"

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

// buildsDir is the folder that the cache keeps installations in. It must be as
// trustworthy as they are: who may write it can swap them.
func buildsDir(explicit string) (string, error) {
	cache, err := cacheDir(explicit)
	if err != nil {
		return "", missing("cannot find the user's cache (set FUMEHOOD_CACHE): " + err.Error())
	}
	dir := filepath.Join(cache, "runsc")
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", missing(err.Error())
	}
	return dir, checkOwner(dir, dir, info)
}

// makeInstallation builds an installation for the cache; tests have one that takes no minute.
var makeInstallation = build

// buildOnce builds into the cache unless another process has done so by the time
// that the lock is ours. What others see is a whole installation or none.
func buildOnce(ctx context.Context, o Options, root, key, builds string) error {
	progress := o.Progress
	if progress == nil {
		progress = func(string) {}
	}
	if err := makeBuildsDir(builds); err != nil {
		return buildFailure("cannot make the cache", err)
	}
	unlock, err := lock(ctx, filepath.Join(builds, "lock"), progress)
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
	if err := makeInstallation(ctx, root, key, scratch, runtime.GOARCH, progress); err != nil {
		return err
	}
	if now, err := sourceKey(root, platform()); err != nil || now != key {
		return buildFailure("cannot install the build", errSourceChanged)
	}
	if err := os.Rename(scratch, dir); err != nil {
		return buildFailure("cannot install the build", err)
	}
	prune(builds)
	return nil
}

// makeBuildsDir makes builds and the cache around it passable, whatever the umask;
// folders that were there before keep their modes.
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

// lock waits for the exclusive lock on path. The kernel frees it when we die.
func lock(ctx context.Context, path string, progress func(string)) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, err
		}
		if !told {
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

// prune removes the oldest builds and what killed processes left behind. A day is
// longer than any run, so nothing in use goes. It holds the lock; errors only cost disk.
func prune(builds string) {
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
	slices.SortFunc(old, func(a, b os.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for i, info := range old {
		if i >= keptBuilds && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(filepath.Join(builds, info.Name()))
		}
	}
}
