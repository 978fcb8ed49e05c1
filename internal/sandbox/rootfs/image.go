// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Files are the files of an image, by their paths relative to its root. Links are followed
// inside the image.
type Files interface {
	fs.StatFS
	fs.ReadDirFS
	fs.ReadLinkFS
	// Resolve returns the path of the file that name leads to, without links in it.
	Resolve(name string) (string, error)
}

// An ImageFile is a verified image file of package image.
type ImageFile struct {
	Name   string // in reports, with the image's digest
	Path   string // on the host
	Digest string // "sha256:…" of the image file
	Files  Files
	PATH   string // of the image's own settings, or ""
}

// own are the places at the root that the sandbox provides itself. Those of a directory or
// an image are not shown.
var own = map[string]bool{"proc": true, "sys": true, "dev": true, "tmp": true, "run": true, "home": true, "root": true,
	"workspace": true, ".fumehood": true, "var": true, "etc": true}

// shell is what commands run under.
const shell = "bin/bash"

// ImageRoot makes a root of an image: everything in it except for the places that the sandbox
// provides itself. Of the image's PATH only plain directories that are shown are used. An
// image without bash is refused with a *proposal.StopError (rootfs.no-bash).
func ImageRoot(i ImageFile) (Root, error) {
	r := Root{Kind: "image", Name: i.Name, Digest: i.Digest, ImagePath: i.Path, Binds: map[string]string{},
		Links: map[string]string{}, Files: generatedFiles(), files: i.Files}
	for _, dir := range []string{".", "etc"} {
		if err := r.imageEntries(dir); err != nil {
			return Root{}, err
		}
	}
	r.Path = r.imagePath(i.PATH)
	if real, ok := r.inImage("/" + shell); !ok || !r.isProgram(real) {
		return Root{}, &proposal.StopError{Code: "rootfs.no-bash",
			Message: fmt.Sprintf("the image %s has no /%s, under which commands run", i.Name, shell),
			Hint:    "use an image with bash, such as one based on Debian or Ubuntu, or install bash in it"}
	}
	return r, nil
}

// imageEntries shows the entries of a directory of the image, which is no link.
func (r Root) imageEntries(dir string) error {
	if info, err := r.files.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	entries, err := r.files.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := path.Join("/", dir, e.Name())
		if _, ours := r.Files[at]; ours || dir == "." && own[e.Name()] || r.hasOurs(at) {
			continue
		}
		if e.Type()&fs.ModeSymlink == 0 {
			r.Binds[at] = at
			continue
		}
		if r.Links[at], err = r.files.ReadLink(at[1:]); err != nil {
			return err
		}
	}
	return nil
}

// hasOurs reports whether a generated file is below the directory at.
func (r Root) hasOurs(at string) bool {
	for ours := range r.Files {
		if isWithinDir(ours, at) {
			return true
		}
	}
	return false
}

// plainPath matches a directory that a PATH of an image may have.
var plainPath = pattern.New(`^/[A-Za-z0-9._+@/-]{1,255}$`)

// maxPathDirs is how many directories of an image's PATH are used.
const maxPathDirs = 64

// imagePath returns PATH inside: the image's directories, then the usual ones.
func (r Root) imagePath(theirs string) string {
	var dirs []string
	for _, dir := range append(filepath.SplitList(theirs), filepath.SplitList(defaultPath)...) {
		if !plainPath.MatchString(dir) || path.Clean(dir) != dir || len(dirs) >= maxPathDirs {
			continue
		}
		if real, ok := r.inImage(dir); ok {
			if info, err := r.files.Stat(real[1:]); err == nil && info.IsDir() {
				dirs = append(dirs, dir)
			}
		}
	}
	return strings.Join(removeDuplicates(dirs), ":")
}

// inImage returns the path, without links, of what at leads to, if it is shown inside.
func (r Root) inImage(at string) (string, bool) {
	real, err := r.files.Resolve(strings.TrimPrefix(at, "/"))
	if err != nil || !r.isVisible("/"+real) {
		return "", false
	}
	return "/" + real, true
}

// isProgram reports whether a path of the image is a file that every user can start.
func (r Root) isProgram(at string) bool {
	info, err := r.files.Stat(at[1:])
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0o111
}

// imageVersion returns the version of a tool of the image if a file of its toolchain has it.
// Nothing of an image is run to learn it.
func (r Root) imageVersion(name, at string) string {
	real, ok := r.inImage(at)
	f, known := versionFiles[name]
	if !ok || !known {
		return ""
	}
	file, err := r.files.Open(path.Join(path.Dir(path.Dir(real)), strings.ReplaceAll(f.path, "*", path.Base(real)))[1:])
	if err != nil {
		return ""
	}
	defer file.Close()
	data, _ := io.ReadAll(io.LimitReader(file, 64<<10))
	if m := f.pattern.FindStringSubmatch(string(data)); m != nil {
		return strings.Join(m[1:], ".")
	}
	return ""
}
