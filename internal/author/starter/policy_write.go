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
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// PolicyDir is the directory that WritePolicy creates, relative to the repository.
const PolicyDir = ".fumehood/policy"

// PolicyCapabilities is the file that WritePolicy adds for `opa --capabilities` and editors.
const PolicyCapabilities = "capabilities.json"

// regalConfig is the configuration of regal, a linter and language server for Rego. It reads the file of capabilities
// from its working directory, the repository. The two rules are about policies that other programs query.
const regalConfig = `# For regal and editors, started in the repository: https://www.openpolicyagent.org/projects/regal
capabilities:
  from:
    file: ` + PolicyDir + "/" + PolicyCapabilities + `
project:
  rego-version: 1
rules:
  idiomatic:
    directory-package-mismatch:
      level: ignore # packages are decision points, not directories
    no-defined-entrypoint:
      level: ignore # fumehood reads the sets
`

// A WrittenPolicy is the result of WritePolicy.
type WrittenPolicy struct {
	Dir   string   `json:"folder"`
	Kinds []string `json:"kinds"`
	Files []string `json:"files"`
}

// String reports what was written and what to do next.
func (w WrittenPolicy) String() string {
	what := "no known kind of repository, so the part for all"
	if len(w.Kinds) > 0 {
		what = strings.Join(w.Kinds, ", ")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "found: %s\nwrote %s:\n", terminal.EscapeLine(what), terminal.EscapeLine(w.Dir))
	for _, name := range w.Files {
		fmt.Fprintf(&b, "  %s\n", name)
	}
	fmt.Fprintf(&b, `
next:
  fumehood policy check --policy %[1]s
  fumehood policy test %[1]s
  fumehood check --policy %[1]s --plan plan.yaml
`, terminal.QuoteWord(w.Dir))
	return b.String()
}

// ParseKinds reads names of kinds, separated by commas; "" means none. An unknown kind is
// an error.
func ParseKinds(text string) (list []string, err error) {
	if text == "" {
		return nil, nil
	}
	for kind := range strings.SplitSeq(text, ",") {
		list = append(list, strings.ToLower(strings.TrimSpace(kind)))
	}
	_, err = PolicyFiles(list)
	return list, err
}

// WritePolicy writes the policy of the kinds, or of those that DetectKinds finds if there are
// none, to a new PolicyDir below repository. It follows no link out of the repository. If it
// fails, it removes the files. Its error is a *proposal.StopError.
func WritePolicy(repository string, kinds []string) (WrittenPolicy, error) {
	root, err := os.OpenRoot(repository)
	if err != nil {
		return WrittenPolicy{}, initError(fmt.Sprintf("cannot open the directory %q", repository),
			"name the repository's directory", err)
	}
	defer root.Close()
	if kinds == nil {
		kinds = DetectKinds(root.FS())
	}
	files, err := PolicyFiles(kinds)
	if err != nil {
		return WrittenPolicy{}, err
	}
	capabilities, err := module.EditorCapabilities()
	if err != nil {
		return WrittenPolicy{}, err
	}
	files = append(files, PolicyFile{PolicyCapabilities, capabilities},
		PolicyFile{".regal/config.yaml", []byte(regalConfig)})
	wrote := WrittenPolicy{Dir: filepath.Join(repository, PolicyDir), Kinds: append([]string{}, kinds...)}
	if err := makeNew(root, wrote.Dir); err != nil {
		return WrittenPolicy{}, err
	}
	for _, file := range files {
		name := path.Join(PolicyDir, file.Name)
		err := root.MkdirAll(path.Dir(name), 0o755)
		if err == nil {
			err = root.WriteFile(name, file.Content, 0o644)
		}
		if err != nil {
			return WrittenPolicy{}, errors.Join(unwritableError(filepath.Join(wrote.Dir, file.Name), err),
				root.RemoveAll(PolicyDir))
		}
		wrote.Files = append(wrote.Files, file.Name)
	}
	return wrote, nil
}

// makeNew creates the directory, which must be new: an existing policy is never
// overwritten.
func makeNew(root *os.Root, shown string) error {
	if err := root.MkdirAll(path.Dir(PolicyDir), 0o755); err != nil {
		return unwritableError(shown, err)
	}
	err := root.Mkdir(PolicyDir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return initError(fmt.Sprintf("a policy already exists at %q", shown),
			"edit it, or move it away first; to check it, run fumehood policy check --policy "+
				terminal.QuoteWord(shown), nil)
	}
	if err != nil {
		return unwritableError(shown, err)
	}
	return nil
}

func initError(message, hint string, err error) error {
	return &proposal.StopError{Code: "policy.init", Message: message, Hint: hint, Err: err}
}

func unwritableError(file string, err error) error {
	return &proposal.StopError{Code: "policy.not-writable", Message: fmt.Sprintf("cannot write %q", file),
		Hint: "check that the directory exists, has free space, and is writable", Err: err}
}
