// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options select what Write writes.
type Options struct {
	Forks bool // the two workflows for pull requests from forks
	Force bool // overwrite existing files
}

// A Written is the result of Write.
type Written struct {
	Dir       string   `json:"dir"`
	Files     []string `json:"files"` // relative to Dir
	Setup     []string `json:"setup"` // commands of the detected set-up
	Tests     []string `json:"tests"` // commands of the plan; none if no tests were found
	Notes     []string `json:"notes"` // what was seen and not set up
	NoRepo    bool     `json:"-"`     // Dir has no .git
	forkFiles bool
}

// Write detects what the repository in dir needs and writes its files. It overwrites no file
// unless o.Force is set, and replaces only regular files: it neither follows nor replaces a
// symbolic link. If it fails, it removes the files that it created. Its error is a
// *proposal.StopError.
func Write(dir string, o Options) (Written, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Written{}, &proposal.StopError{Code: "init.directory",
			Message: fmt.Sprintf("cannot open the directory %q", dir), Hint: "name the repository's directory",
			Err: err}
	}
	defer root.Close()
	r := DetectRepository(root.FS())
	w := Written{Dir: dir, Setup: setupCommands(r.Setup), Tests: []string{}, Notes: []string{}, forkFiles: o.Forks}
	for _, t := range r.Tests {
		w.Tests = append(w.Tests, FormatCommand(proposal.Proposal{Run: t.Run, Cwd: t.Cwd}))
	}
	for _, n := range r.Setup.Notes {
		w.Notes = append(w.Notes, n.String())
	}
	_, err = root.Lstat(".git")
	w.NoRepo = err != nil
	files := r.Files(o.Forks)
	for _, f := range files { // before any is written
		if err := mayWrite(root, dir, f.Path, o.Force); err != nil {
			return Written{}, err
		}
	}
	var created []string
	for _, f := range files {
		_, err := root.Lstat(f.Path)
		isNew := errors.Is(err, fs.ErrNotExist)
		if err := writeFile(root, f, o.Force); err != nil {
			for _, name := range created {
				_ = root.Remove(name)
			}
			return Written{}, &proposal.StopError{Code: "init.not-writable",
				Message: fmt.Sprintf("cannot write %q", filepath.Join(dir, f.Path)),
				Hint:    "check that .github is a directory and writable, and that the disk has free space", Err: err}
		}
		if isNew {
			created = append(created, f.Path)
		}
		w.Files = append(w.Files, f.Path)
	}
	return w, nil
}

func setupCommands(s setup.Setup) []string {
	list := []string{}
	for _, step := range s.Steps {
		list = append(list, FormatCommand(step.Proposal))
	}
	return list
}

// mayWrite refuses to write to a file that exists, with force unless it is a regular one.
func mayWrite(root *os.Root, dir, name string, force bool) error {
	info, err := root.Lstat(name)
	shown := filepath.Join(dir, name)
	switch {
	case err != nil: // it is not there, or writing it fails
		return nil
	case !info.Mode().IsRegular():
		return &proposal.StopError{Code: "init.exists",
			Message: fmt.Sprintf("%q exists and is not a regular file", shown), Hint: "move it away first"}
	case !force:
		return &proposal.StopError{Code: "init.exists", Message: fmt.Sprintf("%q exists already", shown),
			Hint: "edit it, or use --force to overwrite it"}
	}
	return nil
}

// writeFile creates f. With force it writes another file first and renames it, so that it
// replaces f whole or not at all.
func writeFile(root *os.Root, f File, force bool) error {
	if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return err
	}
	name := f.Path
	if force {
		name += ".new"
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = out.WriteString(f.Content)
	if err = errors.Join(err, out.Close()); err == nil && force {
		err = root.Rename(name, f.Path)
	}
	if err != nil {
		_ = root.Remove(name)
	}
	return err
}

// String reports what was found and written, and what to do next.
func (w Written) String() string {
	var b strings.Builder
	list := func(title, none string, items []string) {
		if len(items) == 0 && none == "" {
			return
		}
		fmt.Fprintf(&b, "%s:\n", title)
		if len(items) == 0 {
			items = []string{none}
		}
		for _, item := range items {
			fmt.Fprintf(&b, "  %s\n", terminal.EscapeLine(item))
		}
	}
	list("set-up", "nothing to install was found", w.Setup)
	list("tests", "none were found: replace the command in "+runPath, w.Tests)
	list("notes", "", w.Notes)
	list("wrote", "", w.Files)
	here := ""
	if w.Dir != "." {
		here = " " + terminal.QuoteWord(w.Dir)
	}
	pull := "open a pull request: its comment has the results"
	if w.forkFiles {
		pull = "merge both workflows: the comment appears on pull requests after that"
	}
	fmt.Fprintf(&b, "\nnext:\n  check the plan in %s\n  fumehood config%s\n  commit the files and %s\n", runPath, here,
		pull)
	return b.String()
}
