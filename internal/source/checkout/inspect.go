// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// An Existing is a checkout made by another action that passed the inspection.
type Existing struct {
	Dir  string
	HEAD string // the current commit, one of those requested
	Ref  string // the current branch; "" if HEAD is detached. Untrusted
	// Tracked counts the files and links of HEAD's tree. Changed and Missing count
	// those that differ or are missing in the work tree; files that git converts
	// (line ends, Git LFS, other filters) count as changed. Untracked counts the
	// files that HEAD does not have, including ignored ones.
	Tracked, Changed, Missing, Untracked int
	Examples                             []string // untrusted: the first paths that differ
	// Partial is the reason why the counts do not cover the whole tree, or "".
	Partial string
	Left    []Left // submodules and large files that were not fetched
}

// Bounds of an inspection. If files are not compared because of a bound, the result
// is Partial. If files are not searched for credentials, the checkout is refused.
const (
	maxWalked   = 2_000_000
	maxCompared = 4 << 30
	maxExamples = 10
)

// InspectWorkTree checks a work tree that actions/checkout made, without running git in it:
// no program reads its config or hooks. Its HEAD must be one of want (full ids).
// Neither it nor a nested repository may hold a credential in a config, in a file
// that a config includes, in a password store or in a URL. Files in which other
// actions are known to leave credentials are checked too.
//
// If the checkout is refused, the error is a StopError (CodeCredentials, CodeHead
// or CodeNoCheckout). getenv must return RUNNER_TEMP and HOME. The objects are read
// from a separate store in RUNNER_TEMP, which borrows them.
//
// It does not find credentials in files of other kinds or names.
func InspectWorkTree(ctx context.Context, dir string, want []string, getenv func(string) string) (Existing, error) {
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
		return Existing{}, notCheckout("its .git is not a directory", nil)
	}
	if _, err := root.Lstat(".git/reftable"); err == nil {
		return Existing{}, notCheckout("it keeps its refs in a reftable", nil)
	}
	s := &search{root: root, dir: abs, getenv: getenv}
	if err := s.gitDir(".git"); err != nil {
		return Existing{}, err
	}
	e := Existing{Dir: abs}
	if e.HEAD, e.Ref, err = s.readHead(".git"); err != nil {
		return Existing{}, err
	}
	if !slices.Contains(want, e.HEAD) {
		return Existing{}, newStopError(CodeHead, headHint, nil, "the checkout is at %s, not at %s", e.HEAD,
			strings.Join(want, " or "))
	}
	c := comparison{search: s, existing: &e, tracked: map[string]bool{}}
	err = c.compareTree(ctx)
	if err == nil {
		err = c.findOtherFiles(ctx)
	}
	if err != nil {
		return Existing{}, err
	}
	return e, nil
}

// Describe returns how the checkout differs from its commit, one line each and safe
// to print. It returns nothing if there is no difference. Paths that were left out
// come last.
func (e Existing) Describe() []string {
	var lines []string
	if e.Partial != "" {
		lines = append(lines, "the checkout was only partly compared with its commit: "+text.Inline(e.Partial, 200))
	}
	if e.Changed+e.Missing+e.Untracked > 0 {
		var names []string
		for _, name := range e.Examples {
			names = append(names, text.Inline(name, 80))
		}
		lines = append(lines, fmt.Sprintf("the checkout differs from its commit in %d changed, %d missing and %d additional files: %s",
			e.Changed, e.Missing, e.Untracked, strings.Join(names, ", ")))
	}
	return append(lines, Tree{Left: e.Left}.Describe()...)
}

const headHint = "give the checkout step the pull request's head commit\n" +
	"  - uses: actions/checkout@…\n" +
	"    with:\n" +
	"      ref: ${{ github.event.pull_request.head.sha }}"
