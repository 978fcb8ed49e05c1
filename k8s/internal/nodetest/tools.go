// SPDX-License-Identifier: Apache-2.0

package nodetest

import (
	"archive/tar"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Tools is an image with this machine's shells, coreutils, Python and Node.js. LoadTools makes it.
const Tools = "local.test/tools:1"

// LoadTools makes the image Tools.
func (n *Node) LoadTools(ctx context.Context) error {
	files, err := toolFiles()
	if err != nil {
		return err
	}
	_, err = n.loadImage(ctx, Tools, files, v1.Config{Env: []string{"PATH=/usr/bin:/bin"}, Cmd: []string{"session"}})
	return err
}

// LoadInstalled makes an image with the files of Tools and those of dir, an installation of fumehood, where
// the Dockerfile of the repository has it. It declares no volumes. LoadInstalled returns its reference with
// a digest.
func (n *Node) LoadInstalled(ctx context.Context, reference, dir string) (string, error) {
	files, err := toolFiles()
	if err != nil {
		return "", err
	}
	installed, err := directory("opt/fumehood", dir)
	if err != nil {
		return "", err
	}
	files = append(append(files, installed...),
		file{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/local/bin/fumehood",
			Linkname: "/opt/fumehood/fumehood", Mode: 0o777}})
	return n.loadImage(ctx, reference, files, v1.Config{Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}})
}

// LoadDirectory makes an image that has nothing but the files of dir, at /name, and returns its reference
// with a digest.
func (n *Node) LoadDirectory(ctx context.Context, reference, name, dir string) (string, error) {
	list, err := directory(name, dir)
	if err != nil {
		return "", err
	}
	return n.loadImage(ctx, reference, list, v1.Config{})
}

// directory returns the files of dir, at /name.
func directory(name, dir string) (list []file, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		list = append(list, file{tar.Header{Name: name + strings.TrimPrefix(path, dir), Mode: 0o755}, content})
		return err
	})
	return list, err
}

func (n *Node) loadImage(
	ctx context.Context, reference string, files []file, config v1.Config,
) (digested string, err error) {
	c, err := client.New(n.Socket, client.WithDefaultNamespace(namespace))
	if err != nil {
		return "", err
	}
	defer c.Close()
	if digested, err = load(ctx, c, reference, files, config); err != nil {
		return "", err
	}
	return digested, errors.Join(n.sees(ctx, reference), n.sees(ctx, digested))
}

// toolFiles are the files of Tools: programs with the libraries that ldd names, Python's own and the
// locale of commands.
func toolFiles() ([]file, error) {
	coreutils, err := exec.Command("dpkg", "-L", "coreutils").Output()
	if err != nil {
		return nil, err
	}
	programs := append(strings.Fields(string(coreutils)), "/bin/bash", "/bin/sh", "/bin/dash", "/bin/grep", "/bin/sed",
		"/usr/bin/find", "/usr/bin/python3", "/usr/bin/python3.11", "/usr/bin/node")
	all := files{list: []file{{Header: tar.Header{Typeflag: tar.TypeDir, Name: "tmp", Mode: 0o1777}}}}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		all.list = append(all.list, file{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: link,
			Linkname: "usr/" + link, Mode: 0o777}})
	}
	for _, path := range programs {
		if !strings.Contains(path, "bin/") {
			continue
		}
		if err := all.program(path); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"/usr/lib/python3.11", "/usr/lib/locale/C.utf8"} {
		if err := all.tree(dir); err != nil {
			return nil, err
		}
	}
	return all.list, nil
}

// files collects files of this machine under the same names.
type files struct{ list []file }

func (f *files) has(name string) bool {
	return slices.ContainsFunc(f.list, func(x file) bool { return x.Name == name })
}

var libraries = regexp.MustCompile(`/\S+\.so[.\d]*`)

func (f *files) program(path string) error {
	if err := f.add(path); err != nil {
		return err
	}
	out, _ := exec.Command("ldd", path).Output() // scripts have none
	for _, library := range libraries.FindAllString(string(out), -1) {
		if err := f.add(library); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file, without a link to it, below /usr.
func (f *files) add(path string) error {
	name := strings.TrimPrefix(path, "/")
	if !strings.HasPrefix(name, "usr/") {
		name = "usr/" + name
	}
	if f.has(name) {
		return nil
	}
	content, err := os.ReadFile(path)
	f.list = append(f.list, file{tar.Header{Name: name, Mode: 0o755}, content})
	return err
}

// tree adds a directory. Of Python's library it leaves out what is for tests and development.
func (f *files) tree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{"test", "tests", "idlelib", "lib2to3", "tkinter", "__pycache__"},
			e.Name()):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		case strings.Contains(path, "lib-dynload"):
			return f.program(path)
		}
		return f.add(path)
	})
}
