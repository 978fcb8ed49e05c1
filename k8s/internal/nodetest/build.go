// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// containerdVersion is newer than the library in go.mod: a node's containerd is never
// the version that a shim was compiled with.
const containerdVersion = "v2.4.2"

const module = "github.com/fumehood/fumehood/k8s"

// Names of the programs that build writes.
const (
	fumehoodShim = "containerd-shim-fumehood-v1"
	stockShim    = "containerd-shim-runsc-v1"
	pauseName    = "pause"
	fetchName    = "fetch"
	daemonName   = "containerd"
	busyboxName  = "busybox"
)

// Programs names a directory that Build has filled, for machines without Go.
const Programs = "FUMEHOOD_TEST_NODE"

// programs fills dir, or leads to what there is.
func programs(ctx context.Context, dir string) error {
	if built := os.Getenv(Programs); built != "" {
		return os.Symlink(built, dir)
	}
	return Build(ctx, dir)
}

// Build writes the programs of a Node into dir: of this module both shims and those of images,
// containerd, and the distribution's busybox.
func Build(ctx context.Context, dir string) error {
	if err := compile(ctx, dir); err != nil {
		return err
	}
	daemon, err := containerd(ctx)
	if err != nil {
		return err
	}
	tools, err := busybox(ctx)
	if err != nil {
		return err
	}
	return errors.Join(os.Symlink(daemon, filepath.Join(dir, daemonName)),
		os.Symlink(tools, filepath.Join(dir, busyboxName)))
}

func compile(ctx context.Context, dir string) error {
	return goCommand(ctx, nil, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir+"/",
		module+"/cmd/"+fumehoodShim, module+"/internal/nodetest/"+stockShim, module+"/internal/nodetest/"+pauseName,
		module+"/internal/nodetest/"+fetchName)
}

// containerd returns the path of containerd, which it builds if the user's cache does
// not have it; that takes minutes.
func containerd(ctx context.Context) (string, error) {
	return Cached("containerd-"+containerdVersion, "containerd", func(dir string) error {
		return goCommand(ctx, []string{"GOBIN=" + dir}, "install",
			"github.com/containerd/containerd/v2/cmd/containerd@"+containerdVersion)
	})
}

// runcShim returns the path of containerd's own shim, which it builds if the user's cache does not
// have it.
func runcShim(ctx context.Context) (string, error) {
	const name = "containerd-shim-runc-v2"
	return Cached(name+"-"+containerdVersion, name, func(dir string) error {
		return goCommand(ctx, []string{"GOBIN=" + dir}, "install",
			"github.com/containerd/containerd/v2/cmd/"+name+"@"+containerdVersion)
	})
}

// Fetch builds or fetches into the user's cache what every node has. A test that hides the lists of packages
// calls it before.
func Fetch(ctx context.Context) error {
	_, err := containerd(ctx)
	_, other := busybox(ctx)
	return errors.Join(err, other)
}

// busybox returns the path of the distribution's static busybox, which it fetches if
// the user's cache does not have it. The package is not installed.
func busybox(ctx context.Context) (string, error) {
	return Cached("busybox-static", "bin/busybox", func(dir string) error {
		return Run(ctx, dir, nil, "sh", "-ec", `apt-get download -qq busybox-static
			dpkg-deb -x busybox-static_*.deb .
			test -e bin/busybox || mv usr/bin bin # newer releases`)
	})
}

// Cached returns the file called name of the user's cache for key, which produce writes to
// dir if it does not exist. Concurrent callers, of other processes too, wait for the first one.
func Cached(key, name string, produce func(dir string) error) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache := filepath.Join(user, "fumehood-node", key)
	path := filepath.Join(cache, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, ".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err // another process has produced it meanwhile
	}
	scratch, err := os.MkdirTemp(cache, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := produce(scratch); err != nil {
		return "", err
	}
	return path, os.Rename(filepath.Join(scratch, name), path)
}

// lock waits for the file's lock. It ends with the process, too.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, unix.Flock(int(f.Fd()), unix.LOCK_EX)
}

// goCommand runs the go command without cgo, because the pause program has no libc in its
// image.
func goCommand(ctx context.Context, env []string, args ...string) error {
	return Run(ctx, "", append(env, "CGO_ENABLED=0"), "go", args...)
}

// Run runs a program in dir, with env added to the environment, and reports what it printed if
// it fails.
func Run(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot run %q: %w\n%s", cmd.Args, err, out)
	}
	return nil
}
