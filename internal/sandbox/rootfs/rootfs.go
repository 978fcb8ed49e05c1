// SPDX-License-Identifier: Apache-2.0

// Package rootfs describes a sandbox's root file system.
//
// A Root lists the host files and directories that are visible read-only, the links
// and files that are generated, and PATH. This package starts and mounts nothing. A
// Root's digest covers the inventory (paths, kinds, sizes, modification times, and the
// package database), not every byte: reading all of /usr would take longer than most
// runs. It distinguishes two hosts; it does not prove that a host is honest.
//
// A host root never contains sockets, credentials or anything from HOME, the runner's
// own directories, /run, /var or /root, except for toolchains in PATH: see Search. Of /etc it
// has a fixed list, and unchanged files of packages: see packagedEtc.
package rootfs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Root is everything that a sandbox sees outside the workspace.
type Root struct {
	Kind   string            // "host", "dir" or "image"
	Name   string            // of an image, with the digest of its reference; "" for others
	Digest string            // "sha256:…" of the inventory, or of the image file
	Binds  map[string]string // path inside → path on the host, or of an image in it; read-only
	Links  map[string]string // path inside → link target
	Files  map[string][]byte // path inside → content; the sandbox replaces {uid} and {gid}
	Path   string            // PATH inside
	// Shadows are the tools of the caller's PATH that are other ones inside.
	Shadows []Shadow
	// ImagePath is the path of the image file on the host, "" for other roots.
	ImagePath string

	files Files  // of an image
	dir   string // of a directory
}

// String returns the root's name in reports.
func (r Root) String() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Kind + "@" + r.Digest
}

// FS returns the files of the root, of a directory or image by their paths inside.
func (r Root) FS() fs.FS {
	if r.files != nil {
		return r.files
	}
	return os.DirFS(cmp.Or(r.dir, "/"))
}

// Open is Search.Open with hostPath, the caller's PATH.
func Open(value, hostPath string) (Root, error) { return Search{Path: hostPath}.Open(value) }

// Open reads a --rootfs value: "host" or "dir:PATH". s applies to a host root. For an image,
// see ImageRoot.
func (s Search) Open(value string) (Root, error) {
	if value == "" || value == "host" {
		return hostRoot("/", s)
	}
	if dir, ok := strings.CutPrefix(value, "dir:"); ok {
		return directoryRoot(dir)
	}
	return Root{}, &proposal.StopError{Code: "rootfs.unsupported",
		Message: fmt.Sprintf("unsupported rootfs %q", value),
		Hint:    "use host, dir:PATH, image:REPOSITORY@sha256:…, oci:DIR or oci-archive:FILE"}
}

// hostFolders and hostFiles are the allow-list of a host root. Unchanged files of packages in /etc are
// shown, too: see packagedEtc.
var hostFolders = []string{"/usr", "/opt/hostedtoolcache"}

var hostFiles = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/os-release", "/etc/debian_version", "/etc/mime.types", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
	"/etc/ca-certificates", "/etc/java-*-openjdk", "/etc/maven/*", "/etc/gradle", "/etc/python3", "/etc/python3.*",
	"/etc/perl", "/etc/magic", "/etc/protocols", "/etc/services", "/etc/terminfo", "/etc/fonts", "/etc/php",
	"/etc/bash.bashrc.d", "/etc/gitattributes", "/etc/matplotlibrc", "/etc/timezone", "/etc/ImageMagick-*",
}

// rootLinks are directories that are links into /usr on a merged-/usr host and real
// directories elsewhere.
var rootLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

func hostRoot(base string, s Search) (Root, error) {
	r := Root{Kind: "host", Binds: map[string]string{}, Links: map[string]string{}, Files: generatedFiles()}
	for _, pattern := range append(append([]string{}, hostFolders...), hostFiles...) {
		found, err := filepath.Glob(filepath.Join(base, pattern))
		if err != nil {
			return Root{}, err
		}
		for _, path := range found {
			if at := pathInside(base, path); at != "/etc/maven/settings.xml" || !holdsCredentials(path, mavenWords) {
				r.Binds[at] = path
			}
		}
	}
	for _, path := range rootLinks {
		if err := r.linkOrBind(base, path); err != nil {
			return Root{}, err
		}
	}
	if _, ok := r.Binds["/usr"]; !ok {
		return Root{}, &proposal.StopError{Code: "rootfs.missing", Message: "this host has no /usr",
			Hint: "use --rootfs dir:PATH"}
	}
	maps.Copy(r.Files, r.packagedEtc(base))
	r.findTools(s)
	digest, err := hashInventory(r)
	r.Digest = digest
	return r, err
}

func pathInside(base, path string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(path, base), "/")
}

func (r Root) linkOrBind(base, path string) error {
	full := filepath.Join(base, path)
	info, err := os.Lstat(full)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		r.Binds[path] = full
		return nil
	}
	target, err := os.Readlink(full)
	r.Links[path] = target
	return err
}

// defaultPath follows the caller's PATH inside.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// showsPath reports whether path is in a bound directory and exists.
func (r Root) showsPath(path string) bool {
	for at, source := range r.Binds {
		if path == at || strings.HasPrefix(path, at+"/") {
			_, err := os.Stat(source + strings.TrimPrefix(path, at))
			return err == nil
		}
	}
	_, linked := r.Links[path]
	return linked
}

// workspaceGit is git's configuration for the workspace's own repository.
const workspaceGit = "/etc/fumehood/gitconfig-workspace"

// generatedFiles returns the files that programs expect and that must not be the host's.
func generatedFiles() map[string][]byte {
	return map[string][]byte{
		"/etc/passwd": []byte("root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n" +
			"fumehood:x:{uid}:{gid}:fumehood:/home/fumehood:/bin/bash\n{services}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"),
		"/etc/group":         []byte("root:x:0:\nfumehood:x:{gid}:\nnogroup:x:65534:\n"),
		"/etc/hosts":         []byte("127.0.0.1 localhost fumehood\n::1 localhost\n"),
		"/etc/hostname":      []byte("fumehood\n"),
		"/etc/resolv.conf":   []byte("# this sandbox has no network: only localhost has an address\nnameserver 127.0.0.53\n"),
		"/etc/nsswitch.conf": []byte("passwd: files\ngroup: files\nhosts: files dns\n"),
		// Debian's start script of Chromium reads every file here and fails without one.
		"/etc/chromium.d/fumehood": []byte("# there is no message bus\nexport DBUS_SYSTEM_BUS_ADDRESS=disabled: DBUS_SESSION_BUS_ADDRESS=disabled:\n"),
		// The hooks of the workspace's repository and its submodules do not run. Those of repositories
		// that tests make do.
		workspaceGit: []byte("[core]\n\thooksPath = /dev/null\n"),
		"/etc/gitconfig": []byte("[safe]\n\tdirectory = /workspace\n[core]\n\tcheckStat = minimal\n\ttrustctime = false\n\tfsmonitor = false\n[user]\n\tname = fumehood\n\temail = fumehood@localhost\n[protocol \"ext\"]\n\tallow = never\n" +
			"[includeIf \"gitdir:/workspace/.git\"]\n\tpath = " + workspaceGit +
			"\n[includeIf \"gitdir:/workspace/.git/\"]\n\tpath = " + workspaceGit + "\n"),
	}
}

// directoryRoot makes a root of a prepared directory, such as an unpacked image:
// everything except for the places that the sandbox provides itself.
func directoryRoot(dir string) (Root, error) {
	entries, err := os.ReadDir(dir)
	if err != nil || !filepath.IsAbs(dir) {
		return Root{}, &proposal.StopError{Code: "rootfs.missing",
			Message: fmt.Sprintf("cannot read the rootfs directory %q", dir),
			Hint:    "give an absolute path: --rootfs dir:/path/to/root", Err: err}
	}
	r := Root{Kind: "dir", Binds: map[string]string{}, Links: map[string]string{}, Files: map[string][]byte{},
		Path: defaultPath, dir: dir}
	for _, e := range entries {
		if own[e.Name()] {
			continue
		}
		if err := r.linkOrBind(dir, "/"+e.Name()); err != nil {
			return Root{}, err
		}
	}
	if err := r.bindEtc(dir); err != nil {
		return Root{}, err
	}
	r.Digest, err = hashInventory(r)
	return r, err
}

// bindEtc binds the directory's /etc entry by entry, so that our own files can be added.
func (r Root) bindEtc(dir string) error {
	for path, data := range generatedFiles() {
		r.Files[path] = data
	}
	etc := filepath.Join(dir, "etc")
	if info, err := os.Lstat(etc); err != nil || !info.IsDir() {
		return nil // a link would lead out of the directory: to this host's own
	}
	entries, err := os.ReadDir(etc)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := "/etc/" + e.Name()
		if _, ours := r.Files[path]; ours {
			continue
		}
		if err := r.linkOrBind(dir, path); err != nil {
			return err
		}
	}
	return nil
}

// hashInventory hashes what the root contains: the package database if there is one, and
// name, kind, size and time of the entries in the directories of PATH and at the top
// of each bind.
func hashInventory(r Root) (string, error) {
	sum := sha256.New()
	for _, at := range sortedKeys(r.Binds) {
		fmt.Fprintf(sum, "bind %q\n", at)
		hashDir(sum, r.Binds[at])
	}
	for _, at := range sortedKeys(r.Links) {
		fmt.Fprintf(sum, "link %q %q\n", at, r.Links[at])
	}
	for _, dir := range filepath.SplitList(r.Path) {
		for at, source := range r.Binds {
			if strings.HasPrefix(dir, at+"/") {
				hashDir(sum, source+strings.TrimPrefix(dir, at))
			}
		}
	}
	if r.Kind == "host" {
		// Debian and Ubuntu list every installed version here; elsewhere the file is
		// absent.
		status, _ := os.ReadFile(dpkgStatus)
		sum.Write(status)
		for _, at := range sortedKeys(r.Files) {
			fmt.Fprintf(sum, "file %q %x\n", at, sha256.Sum256(r.Files[at]))
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

func hashDir(sum hash.Hash, path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		hashEntry(sum, path)
		return
	}
	for _, e := range entries {
		hashEntry(sum, filepath.Join(path, e.Name()))
	}
}

func hashEntry(sum hash.Hash, path string) {
	info, err := os.Lstat(path)
	if err != nil {
		fmt.Fprintf(sum, "%q gone\n", path)
		return
	}
	fmt.Fprintf(sum, "%q %s %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
