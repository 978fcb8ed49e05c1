// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A workspace is the pull request's code on this machine.
type workspace struct {
	dir      string
	left     []string // what of the commit is not there
	treeLeft []string // of it, without advice
	doubts   []string // what of it an earlier step may have changed

	mergeBase string // the merge base of the pull request, if its files are in the repository

	sources []string // its files, for links and annotations
}

// writeWorkspace provides the pull request's code: it writes the commit with a new
// repository, or uses the checkout of an earlier step.
func (r Run) writeWorkspace(ctx context.Context) (workspace, error) {
	write := r.writeCommit
	if r.Job.in.Checkout != "" {
		write = r.useCheckout
	}
	w, err := write(ctx)
	if err == nil {
		err = checkDirectory(w.dir, r.Job.in.WorkingDirectory)
	}
	if err != nil {
		return w, err
	}
	if w.sources, err = report.SourcesIn(w.dir); err != nil {
		return w, err
	}
	for _, line := range append(w.left, w.doubts...) {
		r.Job.console.PrintUntrusted(line)
	}
	return w, nil
}

func (r Run) writeCommit(ctx context.Context) (workspace, error) {
	w, q := workspace{dir: filepath.Join(r.Job.dir, "workspace")}, r.Task.Request
	tree, err := r.Base.store.Write(ctx, q.Head, w.dir)
	if err != nil {
		return w, err
	}
	configured, err := r.Base.configuration(ctx)
	if err != nil {
		return w, err
	}
	if tree, err = r.Base.store.AddExtras(ctx, tree, w.dir, checkout.Extras(configured.config.Checkout)); err != nil {
		return w, err
	}
	w.treeLeft = tree.Describe()
	w.left = append(tree.Describe(), missingExtras(tree, configured.config.Checkout)...)
	ancestor, why, err := r.fetchHistory(ctx)
	if err != nil {
		return w, err
	}
	if q.PR != 0 {
		w.mergeBase = ancestor
	}
	if why != "" {
		w.left = append(w.left, why+": git diff base...HEAD and git merge-base do not work")
	}
	return w, r.Base.store.WriteRepository(ctx, w.dir, q.Head, q.Base,
		checkout.Branches{Head: q.HeadRef, Base: q.BaseRef})
}

// missingExtras returns the line that a maintainer adds for what was left out, if any.
func missingExtras(tree checkout.Tree, on config.Checkout) []string {
	var add []string
	for _, part := range []struct {
		why  checkout.Why
		on   bool
		name string
	}{{checkout.Submodule, on.Submodules, "submodules: true"}, {checkout.LargeFile, on.LFS, "lfs: true"}} {
		if !part.on && slices.ContainsFunc(tree.Left, func(l checkout.Left) bool { return l.Why == part.why }) {
			add = append(add, part.name)
		}
	}
	if add == nil {
		return nil
	}
	return []string{fmt.Sprintf("to fetch them, add to %s of the default branch: `checkout: {%s}`", config.Path,
		strings.Join(add, ", "))}
}

// fetchHistory fetches the history down to the merge base, which must be there for git
// diff base...HEAD. It returns the merge base, "" if there is none to compare with, and why that
// was not possible.
func (r Run) fetchHistory(ctx context.Context) (ancestor, why string, err error) {
	q := r.Task.Request
	if q.Head == q.Base {
		return "", "", nil
	}
	return r.Base.store.FetchHistory(ctx, q.Head, q.Base)
}

// useCheckout uses what actions/checkout wrote, when it is at the commit, or at the
// merge that GitHub made of it, and holds no credential. The report says what earlier
// steps changed in it.
func (r Run) useCheckout(ctx context.Context) (workspace, error) {
	j, head := r.Job, r.Task.Request.Head
	w := workspace{dir: filepath.Join(j.runner.Workspace, j.in.Checkout)}
	want := []string{head}
	if j.event.Name == "pull_request" && j.runner.SHA != head {
		want = append(want, j.runner.SHA)
	}
	found, err := checkout.InspectWorkTree(ctx, w.dir, want, j.options.Getenv)
	if err != nil {
		return w, err
	}
	w.doubts = found.Describe()
	if found.HEAD != head {
		w.doubts = append(w.doubts, "only the commit: an earlier step checked out its merge with the base branch")
	}
	return w, nil
}

// cwd is where commands start, "" for the repository's top.
func (j *Job) cwd() string {
	if j.in.WorkingDirectory == "." {
		return ""
	}
	return j.in.WorkingDirectory
}

// checkDirectory makes sure that the directory in which commands start is there. Otherwise
// each command would fail on its own, as if that were the pull request's fault.
func checkDirectory(workspace, name string) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Stat(name); err != nil || !info.IsDir() {
		return &proposal.StopError{Code: "input.working-directory",
			Message: fmt.Sprintf("the commit has no directory %q", name),
			Hint:    "give the input working-directory relative to the top of the repository"}
	}
	return nil
}
