// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/fumehood/fumehood/internal/sandbox/image/oci"
	"github.com/fumehood/fumehood/internal/sandbox/image/tree"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Image is one that is used as root: its files can be read, and the store keeps it until Close.
type Image struct {
	Root  rootfs.Root
	value string
	image oci.Image
	files *tree.FS
	users atomic.Int32
}

type imageKey struct{}

// WithImage returns a context with which OpenImage returns i, which must stay open until then, for the value
// that names it: the content of an image is verified whenever it is opened, which for a large one takes
// seconds. A nil image is none.
func WithImage(ctx context.Context, i *Image) context.Context {
	return context.WithValue(ctx, imageKey{}, i)
}

// OpenImage pulls, makes or finds the image that value names, see oci.Parse. notice is called with lines
// about slow work. Close must be called.
func OpenImage(ctx context.Context, value string, notice func(string)) (*Image, error) {
	if i, _ := ctx.Value(imageKey{}).(*Image); i != nil && i.value == value {
		i.users.Add(1)
		return i, nil
	}
	cache, err := install.CacheDir()
	if err != nil {
		return nil, err
	}
	found, err := oci.Open(ctx, value, oci.Options{Dir: filepath.Join(cache, "images"), Notice: notice})
	if err != nil {
		return nil, err
	}
	i, err := newImage(value, found)
	if err != nil {
		return nil, errors.Join(err, found.Close())
	}
	if text := describeDropped(found.Dropped); text != "" {
		notice("warning: the image is used without " + text)
	}
	return i, nil
}

// ContextImage is what rules see of i, the zero value of nil.
func (i *Image) ContextImage() (c proposal.ContextImage) {
	if i == nil {
		return c
	}
	return contextImage(i.image.Reference)
}

// ParseContextImage is ContextImage of the image that a root's value names, as far as the value says.
func ParseContextImage(value string) (c proposal.ContextImage) {
	if r, err := oci.Parse(value); err == nil {
		c = contextImage(r)
	}
	return c
}

func contextImage(r oci.Reference) proposal.ContextImage {
	c := proposal.ContextImage{Digest: r.Digest}
	if r.Kind == oci.Registry {
		c.Name = r.Target
	}
	return c
}

// Close ends one use of the image's files.
func (i *Image) Close() error {
	if i == nil || i.users.Add(-1) > 0 {
		return nil
	}
	i.files.Close()
	return i.image.Close()
}

func newImage(value string, found oci.Image) (*Image, error) {
	file, err := os.Open(found.Path)
	if err != nil {
		return nil, err
	}
	files, err := tree.Open(file)
	if err != nil {
		return nil, err
	}
	root, err := rootfs.ImageRoot(rootfs.ImageFile{Name: found.String(), Path: found.Path, Digest: found.File,
		Files: files, PATH: pathOf(found.Settings.Env)})
	if err != nil {
		files.Close()
		return nil, err
	}
	i := &Image{Root: root, value: value, image: found, files: files}
	i.users.Store(1)
	return i, nil
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

func describeDropped(d oci.Dropped) string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{d.Devices, "device files, sockets and pipes"}, {d.Setuid, "set-user-ID or set-group-ID bits"},
		{d.Xattrs, "sets of extended attributes"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}
