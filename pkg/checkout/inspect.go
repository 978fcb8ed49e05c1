// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
)

// An Existing is a checkout that somebody else made and that we found fit.
type Existing struct {
	Dir  string
	HEAD string // the commit it is at, one of those that were wanted
	Ref  string // the branch that HEAD is on; "" when it is detached. Untrusted
	// Tracked counts the files and links of HEAD's tree. Changed and Missing are those
	// of them that the work tree has otherwise or not at all; what git converts (line
	// ends, Git LFS, other filters) counts as changed. Untracked are files that HEAD
	// does not have, ignored ones included.
	Tracked, Changed, Missing, Untracked int
	Examples                             []string // untrusted: the first paths that differ
	// Partial says why the counts are not of the whole tree, or "".
	Partial string
	Left    []Left // submodules and large files that were not fetched
}

// Bounds of an inspection. What is not compared makes the result Partial; what is
// not searched for credentials refuses it.
const (
	maxWalked   = 2_000_000
	maxCompared = 4 << 30
	maxExamples = 10
)

// Inspect checks a work tree that actions/checkout made, without running git in it:
// neither its config nor its hooks are read by any program. Its HEAD must be one of
// want (full ids), and neither it nor a repository within it may hold a credential:
// in a config, in a file that a config includes, in a store of passwords, in an
// address. Files that other actions are known to leave credentials in count too.
//
// A checkout that is refused is a StopError (CodeCredentials, CodeHead or
// CodeNoCheckout). getenv gives RUNNER_TEMP and HOME. The objects are read from a
// store beside it, in RUNNER_TEMP, which borrows them.
//
// It does not find a credential in files of another kind or name.
func Inspect(ctx context.Context, dir string, want []string, getenv func(string) string) (Existing, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Existing{}, notCheckout("its path is unknown", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return Existing{}, notCheckout("it cannot be opened", err)
	}
	defer root.Close()
	info, err := root.Lstat(".git")
	switch {
	case err != nil:
		return Existing{}, notCheckout("it has no .git", nil)
	case !info.IsDir():
		return Existing{}, notCheckout("its .git is not a folder", nil)
	}
	if _, err := root.Lstat(".git/reftable"); err == nil {
		return Existing{}, notCheckout("it keeps its refs in a reftable", nil)
	}
	s := &search{root: root, dir: abs, getenv: getenv}
	if err := s.gitFolder(".git"); err != nil {
		return Existing{}, err
	}
	e := Existing{Dir: abs}
	if e.HEAD, e.Ref, err = s.head(".git"); err != nil {
		return Existing{}, err
	}
	if !slices.Contains(want, e.HEAD) {
		return Existing{}, stop(CodeHead, headHint, nil, "the checkout is at %s, not at %s", e.HEAD, strings.Join(want, " or "))
	}
	c := comparison{search: s, existing: &e, tracked: map[string]bool{}}
	err = c.tree(ctx)
	if err == nil {
		err = c.others(ctx)
	}
	if err != nil {
		return Existing{}, err
	}
	return e, nil
}

// Describe returns how the checkout differs from its commit, one line each, fit to
// be shown; none when it does not. What is left out comes last.
func (e Existing) Describe() []string {
	var lines []string
	if e.Partial != "" {
		lines = append(lines, "the checkout was not wholly compared with its commit: "+text.Inline(e.Partial, 200))
	}
	if e.Changed+e.Missing+e.Untracked > 0 {
		var names []string
		for _, name := range e.Examples {
			names = append(names, text.Inline(name, 80))
		}
		lines = append(lines, fmt.Sprintf("the checkout differs from its commit in %d changed, %d missing and %d further files: %s",
			e.Changed, e.Missing, e.Untracked, strings.Join(names, ", ")))
	}
	return append(lines, Tree{Left: e.Left}.Describe()...)
}

const headHint = "give the checkout step the pull request's own commit\n" +
	"  - uses: actions/checkout@…\n" +
	"    with:\n" +
	"      ref: ${{ github.event.pull_request.head.sha }}"
