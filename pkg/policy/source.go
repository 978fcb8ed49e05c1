// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/fumehood/fumehood/policies"
)

// Bounds on what is read before the Rego parser sees it.
const (
	maxFile  = 256 << 10
	maxTotal = 4 << 20
	maxFiles = 1000
)

// A source is one layer's files as read, before they are compiled.
type source struct {
	name   string
	grants bool
	opens  bool
	files  []file
}

type file struct {
	name    string // slash-separated, within the layer
	content []byte
}

// readSources reads the layers in order, the granting one first.
func readSources(o Options) ([]source, error) {
	var sources []source
	if o.Granting == "" {
		files, err := collect(policies.FS)
		if err != nil {
			return nil, stop(codeMissing, "cannot read the shipped policy", "reinstall fumehood", err)
		}
		files = append(files, file{"options.txt", []byte(policies.Options)})
		sources = append(sources, source{name: DefaultLayer, grants: true, files: files})
	}
	granting := false
	for _, dir := range o.Dirs {
		files, err := readDir(dir)
		if err != nil {
			return nil, err
		}
		granting = granting || dir == o.Granting
		sources = append(sources, source{name: dir, grants: o.Granting != "" && dir == o.Granting, opens: slices.Contains(o.Opening, dir), files: files})
	}
	for _, dir := range o.Opening {
		if !slices.Contains(o.Dirs, dir) {
			return nil, stop(codeMissing, fmt.Sprintf("%q, which may grant hosts, is none of the policy folders", dir), "name it among the policy folders too", nil)
		}
	}
	if o.Granting != "" && !granting {
		return nil, stop(codeMissing, fmt.Sprintf("the granting layer %q is none of the policy folders", o.Granting),
			"name it among the policy folders too", nil)
	}
	return sources, nil
}

// readDir reads a policy folder through a root that no symlink can leave.
func readDir(dir string) ([]file, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, stop(codeMissing, fmt.Sprintf("the policy folder %q does not exist", dir), "create it with at least one .rego file, or do not name it", nil)
	case err != nil:
		return nil, stop(codeMissing, fmt.Sprintf("cannot read the policy folder %q", dir), "make it readable", err)
	case !info.IsDir():
		return nil, stop(codeSymlink, fmt.Sprintf("%q is not a folder", dir), "name the folder itself, not a symlink or a file", nil)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, stop(codeMissing, fmt.Sprintf("cannot open the policy folder %q", dir), "make it readable", err)
	}
	defer root.Close()
	files, err := collect(root.FS())
	if err != nil {
		return nil, inDir(dir, err)
	}
	if len(files) == 0 {
		return nil, stop(codeMissing, fmt.Sprintf("the policy folder %q holds no .rego file", dir), "add a rule, or do not name it", nil)
	}
	return files, nil
}

var (
	errIrregular = errors.New("is a symlink or not a regular file")
	errTooLarge  = errors.New("is too large")
)

func inDir(dir string, err error) error {
	switch {
	case errors.Is(err, errIrregular):
		return stop(codeSymlink, fmt.Sprintf("in the policy folder %q", dir), "replace it by the file itself", err)
	case errors.Is(err, errTooLarge):
		return stop(codeTooLarge, fmt.Sprintf("the policy folder %q", dir),
			fmt.Sprintf("at most %d files, %d KiB a file and %d KiB in all", maxFiles, maxFile>>10, maxTotal>>10), err)
	}
	return stop(codeMissing, fmt.Sprintf("cannot read the policy folder %q", dir), "make it readable", err)
}

// collect reads every .rego file that is not a test, in the order of their names.
func collect(fsys fs.FS) ([]file, error) {
	var files []file
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%q %w", name, errIrregular)
		}
		if path.Ext(name) != ".rego" || strings.HasSuffix(name, "_test.rego") {
			return nil
		}
		content, err := readFile(fsys, name)
		if err != nil {
			return err
		}
		files = append(files, file{filepath.ToSlash(name), content})
		if total += len(content); total > maxTotal || len(files) > maxFiles {
			return fmt.Errorf("as a whole %w", errTooLarge)
		}
		return nil
	})
	return files, err
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%q %w", name, errTooLarge)
	}
	return content, err
}

// digest covers names and contents with their lengths, so that no two different
// sets of files can meet. Where a folder lies does not count, its place in the
// order and whether it grants, opens or is only observed do: what was approved under layers
// that were observed was not approved under layers that hold.
func digest(sources []source, observe bool) string {
	h := sha256.New()
	if observe {
		io.WriteString(h, "observe\n")
	}
	for i, s := range sources {
		fmt.Fprintf(h, "layer %d %t %d\n", i, s.grants, len(s.files))
		if s.opens {
			io.WriteString(h, "opens\n")
		}
		sort.Slice(s.files, func(i, j int) bool { return s.files[i].name < s.files[j].name })
		for _, f := range s.files {
			fmt.Fprintf(h, "%d %s %d\n", len(f.name), f.name, len(f.content))
			h.Write(f.content)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
