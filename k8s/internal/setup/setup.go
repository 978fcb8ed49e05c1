// SPDX-License-Identifier: Apache-2.0

// Package setup puts the shim and its fumehood-runsc on a node, and names them in containerd's
// configuration.
//
// Each version gets a directory of its own, named by its content, below doctor.Versions. Pods go on with
// the version that started them: Install never changes or removes one. What is new is whole: it is
// copied beside, verified there, and then renamed.
package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/BurntSushi/toml"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/replace"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	runscName   = "fumehood-runsc"
	runtimeType = "io.containerd.fumehood.v1"
)

// Options say what to install, and where. From is required.
type Options struct {
	From string // a directory with the shim and the installation of fumehood-runsc
	Root string // where the node's root directory is mounted; "" is /
	// RunscConfig is the path, on the node, of a file with options of gVisor's shim; "" is none.
	RunscConfig string
}

// Install installs a version and returns its directory on the node. changed says that containerd's
// configuration is another now: containerd must be restarted. The error is a *proposal.StopError.
func Install(ctx context.Context, o Options) (version string, changed bool, err error) {
	if o.RunscConfig != "" && !filepath.IsAbs(o.RunscConfig) {
		return "", false, stop("setup.config", fmt.Sprintf("%q is not an absolute path", o.RunscConfig),
			"name the file as the node does", nil)
	}
	name, files, err := digest(ctx, o.From)
	if err != nil {
		return "", false, err
	}
	version = filepath.Join(doctor.Versions, name)
	if err := o.place(ctx, version, files); err != nil {
		return "", false, err
	}
	changed, err = o.configure(version)
	return version, changed, err
}

// digest verifies the installation in dir, and returns a name for its content, and its files.
func digest(ctx context.Context, dir string) (name string, files []string, err error) {
	runsc, err := install.Find(ctx, install.Options{Path: filepath.Join(dir, runscName)})
	if err != nil {
		return "", nil, err
	}
	f, err := os.Open(filepath.Join(dir, doctor.Shim))
	if err != nil {
		return "", nil, stop("setup.shim", "cannot read the shim", "put it beside "+runscName, err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", nil, stop("setup.shim", "cannot read the shim", "copy it again", err)
	}
	io.WriteString(sum, runsc.Digest)
	return hex.EncodeToString(sum.Sum(nil)[:16]), append(runsc.Files(), doctor.Shim), nil
}

// place copies the version unless it is there.
func (o Options) place(ctx context.Context, version string, files []string) error {
	to := filepath.Join(o.Root, version)
	if got, _, err := digest(ctx, to); err == nil && got == filepath.Base(to) {
		return nil
	}
	if _, err := os.Lstat(to); err == nil {
		return stop("setup.changed", to+" is not what was installed there",
			"find out who changed it; remove it when no pod of it runs", nil)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return failed(err)
	}
	if err := process.CheckPrivate(filepath.Dir(to), 0); err != nil {
		return failed(err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(to), ".new-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(scratch)
	if err := copyAll(files, o.From, scratch); err != nil {
		return failed(err)
	}
	if got, _, err := digest(ctx, scratch); err != nil || got != filepath.Base(to) {
		return stop("setup.copy", "what was copied is something else than what was read", "try again", err)
	}
	return failed(os.Rename(scratch, to))
}

// copyAll copies files by name. Links of one file stay that.
func copyAll(names []string, from, to string) error {
	if err := os.Chmod(to, 0o755); err != nil {
		return err
	}
	first := map[string]fs.FileInfo{} // by path
	for _, name := range names {
		at := filepath.Join(to, name)
		info, err := os.Lstat(filepath.Join(from, name))
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", name)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(at), 0o755)
		}
		if err != nil {
			return err
		}
		if err := copyOrLink(first, info, filepath.Join(from, name), at); err != nil {
			return err
		}
	}
	return nil
}

func copyOrLink(first map[string]fs.FileInfo, info fs.FileInfo, from, to string) error {
	for other, known := range first {
		if os.SameFile(known, info) {
			return os.Link(other, to)
		}
	}
	first[to] = info
	return copyFile(from, to, info.Mode().Perm()&^0o022)
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Sync(), out.Close())
}

type table = map[string]any

// configure makes version the one of new pods.
func (o Options) configure(version string) (changed bool, err error) {
	runtime := table{"runtime_type": runtimeType, "runtime_path": filepath.Join(version, doctor.Shim),
		"pod_annotations": []string{"fumehood.dev/*"}}
	if o.RunscConfig != "" {
		runtime["options"] = table{"TypeUrl": "io.containerd.runsc.v1.options", "ConfigPath": o.RunscConfig}
	}
	var text bytes.Buffer
	text.WriteString("# Written by " + doctor.Shim + " install.\n")
	runtimes := table{"containerd": table{"runtimes": table{"fumehood": runtime}}}
	config := table{"version": 3, "plugins": table{"io.containerd.cri.v1.runtime": runtimes}}
	if err := toml.NewEncoder(&text).Encode(config); err != nil {
		return false, failed(err)
	}
	path := filepath.Join(o.Root, doctor.DropIn)
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, text.Bytes()) {
		return false, nil
	}
	// it names what root runs
	err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), process.CheckPrivate(filepath.Dir(path), 0))
	if err != nil {
		return false, failed(err)
	}
	return true, failed(replace.File(path, text.Bytes(), 0o644))
}

// Remove removes what Install has written: containerd's configuration, and all versions. No pod may
// run.
func Remove(root string) error {
	err := os.Remove(filepath.Join(root, doctor.DropIn))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return failed(errors.Join(err, empty(filepath.Join(root, doctor.Versions))))
}

// empty removes a directory with what is in it. One that is a mount point remains empty, also in a
// directory that is read-only, as in a pod.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		return err
	}
	if err = os.Remove(dir); errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return stop("setup.write", "cannot change the node", "run it as root, on a file system that can be written to", err)
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
