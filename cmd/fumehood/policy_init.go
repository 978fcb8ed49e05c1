// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/fumehood/fumehood/pkg/policy/starter"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// starterFolder is where policy init writes, below the repository.
const starterFolder = ".fumehood/policy"

func policyInitDoor() *door {
	return &door{
		name:     "policy init",
		synopsis: "write a first policy for a repository, with its tests",
		usage: `[REPOSITORY] [flags]

It looks at the names of the repository's files (go.mod, package.json …), two folders
deep, and writes ` + starterFolder + ` below it, which must not exist.

examples:
  fumehood policy init
  fumehood policy init ~/src/project --kind go,node
`,
		run: initPolicy,
	}
}

// An initialised says what policy init wrote.
type initialised struct {
	Folder string   `json:"folder"`
	Kinds  []string `json:"kinds"`
	Files  []string `json:"files"`
}

func initPolicy(c *call) int {
	var kind string
	var asJSON bool
	f := c.flags()
	f.StringVar(&kind, "kind", "", "what the repository is, in place of looking: `KINDS` of "+strings.Join(starter.Kinds(), ", ")+", separated by commas")
	f.BoolVar(&asJSON, "json", false, "print what was written as JSON")
	args, code, ok := c.parseMixed(f)
	if !ok {
		return code
	}
	if len(args) > 1 {
		return c.misuse("policy init takes one repository")
	}
	repository := "."
	if len(args) == 1 {
		repository = args[0]
	}
	files, kinds, err := starterOf(kind)
	if err != nil {
		return c.misuse(printable(err.Error()))
	}
	wrote, err := writeStarter(repository, kinds, files)
	if err != nil {
		return c.stopped(err)
	}
	if asJSON {
		if err := json.NewEncoder(c.stdout).Encode(wrote); err != nil {
			return c.stopped(err)
		}
		return exitOK
	}
	c.tellStarter(wrote)
	return exitOK
}

// starterOf is what --kind names; nothing, where it is for the repository to say.
func starterOf(kind string) (files []starter.File, kinds []string, err error) {
	if kind == "" {
		return nil, nil, nil
	}
	for k := range strings.SplitSeq(kind, ",") {
		kinds = append(kinds, strings.ToLower(strings.TrimSpace(k)))
	}
	files, err = starter.Files(kinds)
	return files, kinds, err
}

// writeStarter writes through a root that no link in the repository can lead out of. Where
// not all of it can be written, nothing of it stays.
func writeStarter(repository string, kinds []string, files []starter.File) (initialised, error) {
	root, err := os.OpenRoot(repository)
	if err != nil {
		return initialised{}, initError(fmt.Sprintf("cannot open the folder %q", repository), "name the repository's folder", err)
	}
	defer root.Close()
	if files == nil {
		kinds = starter.Detect(root.FS())
		if files, err = starter.Files(kinds); err != nil {
			return initialised{}, err
		}
	}
	wrote := initialised{Folder: filepath.Join(repository, starterFolder), Kinds: append([]string{}, kinds...)}
	if err := makeNew(root, wrote.Folder); err != nil {
		return initialised{}, err
	}
	for _, file := range files {
		if err := root.WriteFile(path.Join(starterFolder, file.Name), file.Content, 0o644); err != nil {
			return initialised{}, errors.Join(unwritable(filepath.Join(wrote.Folder, file.Name), err), root.RemoveAll(starterFolder))
		}
		wrote.Files = append(wrote.Files, file.Name)
	}
	return wrote, nil
}

// makeNew makes the folder, which must be new: a policy that stands is never written over.
func makeNew(root *os.Root, shown string) error {
	if err := root.MkdirAll(path.Dir(starterFolder), 0o755); err != nil {
		return unwritable(shown, err)
	}
	err := root.Mkdir(starterFolder, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return initError(fmt.Sprintf("there is a policy at %q already", shown),
			"change it, or move it away first: fumehood policy check --policy "+shellWord(shown)+" says what it holds", nil)
	}
	if err != nil {
		return unwritable(shown, err)
	}
	return nil
}

func initError(message, hint string, err error) error {
	return &proposal.StopError{Code: "policy.init", Message: message, Hint: hint, Err: err}
}

func (c *call) tellStarter(wrote initialised) {
	what := "no kind of repository that it knows, so what fits every one"
	if len(wrote.Kinds) > 0 {
		what = strings.Join(wrote.Kinds, ", ")
	}
	fmt.Fprintf(c.stdout, "found: %s\nwrote %s:\n", printable(what), printable(wrote.Folder))
	for _, name := range wrote.Files {
		fmt.Fprintf(c.stdout, "  %s\n", name)
	}
	fmt.Fprintf(c.stdout, `
next:
  fumehood policy check --policy %[1]s
  fumehood policy test %[1]s
  fumehood check --policy %[1]s --plan plan.yaml
`, shellWord(wrote.Folder))
}
