// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/sandbox/image"
	imagetree "github.com/fumehood/fumehood/internal/sandbox/image/tree"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// imageOf makes an image of files, as tree makes a directory.
func imageOf(t *testing.T, files map[string]string) Files {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	w, err := image.Create(path, image.Options{})
	must(t, err)
	for _, name := range sortedKeys(files) {
		text := files[name]
		e := image.Entry{Path: name, Mode: 0o644, Size: int64(len(text))}
		if strings.HasPrefix(text, program) {
			e.Mode = 0o755
		}
		if target, link := strings.CutPrefix(text, "-> "); link {
			e = image.Entry{Path: name, Mode: fs.ModeSymlink | 0o777, Link: target}
		}
		must(t, w.Add(e, strings.NewReader(text)))
	}
	_, _, err = w.Close()
	must(t, err)
	file, err := os.Open(path)
	must(t, err)
	found, err := imagetree.Open(file)
	must(t, err)
	t.Cleanup(found.Close)
	return found
}

func TestImage(t *testing.T) {
	files := imageOf(t, map[string]string{
		"usr/bin/bash": program, "usr/bin/node": program, "usr/include/node/node_version.h": "#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 1\n#define NODE_PATCH_VERSION 0\n",
		"bin": "-> usr/bin", "opt/x/bin/x": program, "opt/link": "-> /home/user", "home/user/evil": program, "tmp/evil": program, "var/lib/x": "", "root/.ssh/key": "",
		"etc/passwd": "evil", "etc/ssl/certs/a": "", "etc/mtab": "-> /proc/mounts", "etc/chromium.d/x": "",
	})
	r, err := ImageRoot(ImageFile{Name: "image:x@sha256:0", Digest: "sha256:1", Files: files,
		PATH: "/opt/x/bin:/tmp:/home/user:/opt/link:relative:/opt/../tmp:/nothing::/usr/bin/:/opt/x\x00:/opt/x/bin"})
	must(t, err)
	if got := strings.Join(slices.Sorted(maps.Keys(r.Binds)), " "); got != "/etc/ssl /opt /usr" {
		t.Errorf("binds %s", got)
	}
	if r.Links["/bin"] != "usr/bin" || r.Links["/etc/mtab"] != "/proc/mounts" || len(r.Links) != 2 {
		t.Errorf("links %v", r.Links)
	}
	if r.Path != "/opt/x/bin:/usr/bin:/bin" {
		t.Errorf("PATH %q; want directories that are shown and cannot be written", r.Path)
	}
	if string(r.Files["/etc/passwd"]) == "evil" || r.String() != "image:x@sha256:0" {
		t.Errorf("%s has %q", r, r.Files["/etc/passwd"])
	}
	tools := r.Toolchains(t.Context(), Search{}, "")
	if len(tools) != 1 || tools[0] != (proposal.Toolchain{Name: "node", Path: "/usr/bin/node", Version: "22.1.0"}) {
		t.Errorf("%+v", tools)
	}
}

// Without a bash that every user can start, nothing runs.
func TestImageWithoutBash(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none": {"bin/sh": program}, "not executable": {"bin/bash": "text"}, "a link to what is not shown": {"bin/bash": "-> /home/bash", "home/bash": program},
		"a link to nothing": {"bin/bash": "-> /usr/bin/bash"}, "empty": {},
	} {
		_, err := ImageRoot(ImageFile{Name: "x", Files: imageOf(t, files)})
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "rootfs.no-bash" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
