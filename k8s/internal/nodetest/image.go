// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Images that every node has. No registry serves them.
const (
	Pause   = "local.test/pause:1"
	Busybox = "local.test/busybox:1"
)

// applets are the tools of Busybox, as symbolic links in /bin, beside our own fetch. Those that resolve names,
// such as wget, crash, because the image does not have glibc's modules.
var applets = []string{
	"cat", "chmod", "cp", "echo", "env", "false", "grep", "head", "id", "ls", "mkdir", "mv", "nc", "printf",
	"ps", "rm", "sh", "sleep", "tail", "test", "touch", "true", "uname", "wc",
}

const users = "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n"

// A file is an entry of an image's only layer.
type file struct {
	tar.Header
	content []byte
}

// pauseFiles are the files of Pause.
func pauseFiles(program []byte) []file {
	return []file{{tar.Header{Name: "pause", Mode: 0o755}, program}}
}

// busyboxFiles are the files of Busybox.
func busyboxFiles(program, fetch []byte) []file {
	var files []file
	for _, dir := range []string{"bin", "dev", "etc", "proc", "sys"} {
		files = append(files, file{Header: tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}})
	}
	files = append(files,
		file{Header: tar.Header{Typeflag: tar.TypeDir, Name: "tmp", Mode: 0o1777}},  // gVisor mounts a tmpfs over it
		file{Header: tar.Header{Typeflag: tar.TypeDir, Name: "home", Mode: 0o1777}}, // and not over this
		file{tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte(users)},
		file{tar.Header{Name: "bin/fetch", Mode: 0o755}, fetch},
		file{tar.Header{Name: "bin/busybox", Mode: 0o755}, program})
	for _, applet := range applets {
		files = append(files, file{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet,
			Linkname: "busybox", Mode: 0o777}})
	}
	return files
}

// image makes an image of one layer.
func image(files []file, config v1.Config) (v1.Image, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, f := range files {
		f.Size = int64(len(f.content))
		if err := w.WriteHeader(&f.Header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser,
		error) {
		return io.NopCloser(bytes.NewReader(text.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	full, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	full = full.DeepCopy()
	full.OS, full.Architecture, full.Config = "linux", runtime.GOARCH, config
	return mutate.ConfigFile(img, full)
}

// load makes both images and puts them into containerd's image store, unpacked.
func (n *Node) load(ctx context.Context) error {
	c, err := client.New(n.Socket, client.WithDefaultNamespace(namespace))
	if err != nil {
		return err
	}
	defer c.Close()
	pause, err := os.ReadFile(n.path("bin", pauseName))
	if err != nil {
		return err
	}
	if _, err := load(ctx, c, Pause, pauseFiles(pause), v1.Config{Entrypoint: []string{"/pause"}}); err != nil {
		return err
	}
	tools, err := os.ReadFile(n.path("bin", busyboxName))
	if err != nil {
		return err
	}
	fetch, err := os.ReadFile(n.path("bin", fetchName))
	if err != nil {
		return err
	}
	_, err = load(ctx, c, Busybox, busyboxFiles(tools, fetch),
		v1.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"/bin/sh"}})
	return err
}

// load imports an image as reference, and as the one that it returns, which has the image's digest.
func load(
	ctx context.Context, c *client.Client, reference string, files []file, config v1.Config,
) (digested string, err error) {
	img, err := image(files, config)
	if err != nil {
		return "", err
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return "", err
	}
	var archive bytes.Buffer
	if err := tarball.Write(tag, img, &archive); err != nil {
		return "", err
	}
	imported, err := c.Import(ctx, &archive)
	if err != nil {
		return "", fmt.Errorf("cannot import %s: %w", reference, err)
	}
	for _, i := range imported {
		if err := client.NewImage(c, i).Unpack(ctx, snapshotter); err != nil {
			return "", fmt.Errorf("cannot unpack %s: %w", reference, err)
		}
	}
	digested = tag.Repository.Name() + "@" + imported[0].Target.Digest.String()
	_, err = c.ImageService().Create(ctx, images.Image{Name: digested, Target: imported[0].Target})
	return digested, err
}
