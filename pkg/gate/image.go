// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/sandbox/image/oci"
	"github.com/fumehood/fumehood/internal/sandbox/image/tree"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An openImage is an image that a Gate uses as root: its files can be read, and the store
// keeps it until Close.
type openImage struct {
	value string
	image oci.Image
	files *tree.FS
	root  rootfs.Root
}

// Close ends the use of the image's files.
func (i *openImage) Close() error {
	if i == nil {
		return nil
	}
	i.files.Close()
	return i.image.Close()
}

// openImageRoot pulls, makes or finds the image that value names.
func openImageRoot(ctx context.Context, value string, notice func(string)) (*openImage, error) {
	cache, err := install.CacheDir()
	if err != nil {
		return nil, err
	}
	found, err := oci.Open(ctx, value, oci.Options{Dir: filepath.Join(cache, "images"), Notice: notice})
	if err != nil {
		return nil, err
	}
	i, err := newOpenImage(value, found)
	if err != nil {
		return nil, errors.Join(err, found.Close())
	}
	if text := left(found.Dropped); text != "" {
		notice("warning: the image is used without " + text)
	}
	return i, nil
}

func newOpenImage(value string, found oci.Image) (*openImage, error) {
	file, err := os.Open(found.Path)
	if err != nil {
		return nil, err
	}
	files, err := tree.Open(file)
	if err != nil {
		return nil, err
	}
	root, err := rootfs.ImageRoot(rootfs.ImageFile{Name: found.String(), Path: found.Path, Digest: found.File, Files: files, PATH: pathOf(found.Settings.Env)})
	if err != nil {
		files.Close()
		return nil, err
	}
	return &openImage{value, found, files, root}, nil
}

// pathOf returns PATH of an image's variables.
func pathOf(env []string) (value string) {
	for _, e := range env {
		if found, is := strings.CutPrefix(e, "PATH="); is {
			value = found
		}
	}
	return value
}

func left(d oci.Dropped) string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{d.Devices, "device files, sockets and pipes"}, {d.Setuid, "set-user-ID or set-group-ID bits"}, {d.Xattrs, "sets of extended attributes"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// openRoot sets g.root.
func (g *Gate) openRoot(ctx context.Context, search rootfs.Search) (err error) {
	switch {
	case g.o.image != nil && g.o.image.value == g.o.Rootfs:
		g.image = g.o.image
	case oci.Is(g.o.Rootfs):
		if g.image, err = openImageRoot(ctx, g.o.Rootfs, g.o.notice); err != nil {
			return err
		}
	case isDevcontainer(g.o.Rootfs):
		return &proposal.StopError{Code: codeDevcontainer, Message: "Options.Rootfs names a devcontainer.json that was not read", Hint: "call Options.Configure"}
	default:
		g.root, err = search.Open(g.o.Rootfs)
		return err
	}
	g.root = g.image.root
	return nil
}
