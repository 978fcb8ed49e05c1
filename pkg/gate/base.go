// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A BaseTree is the base of a pull request: the merge base of its head and the branch that it is
// for. It must come from the operator or from GitHub, never from the pull request.
type BaseTree struct {
	Commit string // full id
	// Directory is the directory of the commit that corresponds to Options.Workspace; "" is its top.
	Directory string
	// Left are the parts of its own commit that the workspace lacks, as Write describes those of
	// Commit. If the two differ, nothing is compared.
	Left []string
	// Write writes the files of Commit to dir, which does not exist, and returns what of them it
	// left out. It is called only if a command fails.
	Write func(ctx context.Context, dir string) (left []string, err error)
}

// originHead is the ref of origin's default branch, as git clone writes it.
const originHead = "refs/remotes/origin/HEAD"

// FindBase returns the base of a workspace: the merge base of HEAD and the branch or commit name. If
// name is "" it is that of origin's default branch, and nil if there is none or HEAD is on it. Only
// a name that cannot be used is an error.
func FindBase(ctx context.Context, workspace, name string) (*BaseTree, error) {
	commit, below, err := findMergeBase(ctx, workspace, cmp.Or(name, originHead))
	if err != nil && name == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &BaseTree{Commit: commit, Directory: below, Write: func(ctx context.Context, dir string) ([]string, error) {
		return checkout.WriteCommit(ctx, workspace, commit, dir)
	}}, nil
}

// findMergeBase returns the merge base of HEAD and name, which must not be HEAD, and the directory of
// the commit that workspace is.
func findMergeBase(ctx context.Context, workspace, name string) (commit, below string, err error) {
	local, err := checkout.OpenLocal(ctx, workspace)
	if err != nil {
		return "", "", err
	}
	defer local.Close()
	if below, err = local.RelativePath(workspace); err != nil {
		return "", "", err
	}
	base, err := local.Commit(ctx, name)
	if err != nil {
		return "", "", err
	}
	head, err := local.Commit(ctx, "HEAD")
	if err != nil {
		return "", "", err
	}
	commit, err = local.MergeBase(ctx, base, head)
	if err == nil && commit == head {
		err = &proposal.StopError{Code: checkout.CodeLocal,
			Message: "HEAD is on the base: there is nothing to compare with",
			Hint:    "leave out --base, or commit the change"}
	}
	return commit, below, err
}

// baseDir is the name prefix of directories for the files of a base.
const baseDir = "fumehood-base-"

// base implements order.Base for one run. Nothing that the pull request's code could write is in
// its sandbox: the files are another directory's, the overlays are new, and a layer is used only if
// a run before this one kept it, not a private one or one of an exchange.
type base struct {
	head   *run
	tree   BaseTree
	dir    *lease.Dir // of the files; nil before Open
	layers *baseLayers
}

// baseOf returns the base of r's pull request, or nil if its commands are not compared.
func (g *Gate) baseOf(r *run) *base {
	if g.o.Base == nil || g.o.ObserveNetworkUnsafe {
		return nil
	}
	return &base{head: r, tree: *g.o.Base}
}

func (b *base) Commit() string { return b.tree.Commit }

// Open implements order.Base.
func (b *base) Open(ctx context.Context) (workspace string, err error) {
	defer func() { err = withoutBaseDir(err) }()
	lease.Sweep(os.TempDir(), baseDir, (*lease.Dir).Remove) // of runs that were killed
	if b.dir, err = lease.Make(os.TempDir(), baseDir); err != nil {
		return "", err
	}
	top := filepath.Join(b.dir.Path, "workspace")
	left, err := b.tree.Write(ctx, top)
	if err != nil {
		return "", err
	}
	if !slices.Equal(left, b.tree.Left) {
		return "", fmt.Errorf("other parts of the commit are left out: %s", strings.Join(left, "; "))
	}
	workspace = filepath.Join(top, b.tree.Directory)
	if info, err := os.Lstat(workspace); err != nil || !info.IsDir() ||
		!filepath.IsLocal(filepath.Join(".", b.tree.Directory)) {
		return "", fmt.Errorf("it has no directory %q", b.tree.Directory)
	}
	if err := ownLike(b.head.gate.sandbox.Workspace, b.dir.Path, top); err != nil {
		return "", err
	}
	if hide := checkout.HiddenPaths(b.head.gate.o.Hide); len(hide) > 0 {
		shown := workspace // corresponds to Options.Workspace, whose paths the patterns name
		workspace = filepath.Join(b.dir.Path, "visible")
		if err := hide.CopyVisible(ctx, shown, workspace); err != nil {
			return "", err
		}
	}
	if b.head.gate.kept != nil {
		b.layers = &baseLayers{setupLayering{run: b.head}}
	}
	return workspace, nil
}

// basePath is the path of a file of a base, of which the beginning differs from run to run, and
// baseTop that of all of them.
var (
	basePath = pattern.New(`[^\s"':]{0,400}/` + baseDir + `[^/\s"':]{1,100}/(?:(?:workspace|visible)/)?([^/\s"':])`)
	baseTop  = pattern.New(`[^\s"':]{0,400}/` + baseDir + `[^/\s"':]{1,100}(?:/(?:workspace|visible))?/?`)
)

// A namelessError is an error whose text does not have the path of a base.
type namelessError struct {
	error
	text string
}

func (e namelessError) Error() string { return e.text }
func (e namelessError) Unwrap() error { return e.error }

// withoutBaseDir returns err with the paths of a base's files relative to it: a reader has no use for the rest.
func withoutBaseDir(err error) error {
	if err == nil {
		return nil
	}
	hide := func(text string) string {
		return baseTop.ReplaceAllString(basePath.ReplaceAllString(text, "$1"), "a temporary directory")
	}
	var stopped *proposal.StopError
	if errors.As(err, &stopped) {
		hidden := *stopped
		hidden.Message, hidden.Hint, hidden.Err = hide(hidden.Message), hide(hidden.Hint), withoutBaseDir(hidden.Err)
		return &hidden
	}
	return namelessError{err, hide(err.Error())}
}

// ownLike gives the files below top to the owner of workspace, whose user commands run as, and
// lets that user reach them.
func ownLike(workspace, parent, top string) error {
	var owner syscall.Stat_t
	if err := syscall.Stat(workspace, &owner); err != nil {
		return err
	}
	if err := os.Chmod(parent, 0o711); err != nil {
		return err
	}
	return filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
}

// Layers implements order.Base.
func (b *base) Layers() order.SetupLayers {
	if b.layers == nil {
		return nil // not a nil pointer in it
	}
	return b.layers
}

// Close implements order.Base.
func (b *base) Close() error {
	if b.layers != nil {
		b.layers.closeLayer()
	}
	if b.dir == nil {
		return nil
	}
	return b.dir.Remove()
}

// baseLayers finds layers that earlier runs kept, and keeps none.
type baseLayers struct{ setupLayering }

// Find implements order.Layers.
func (l *baseLayers) Find(
	_ context.Context, records []proposal.Record, o sandbox.Options,
) (none order.FoundSetupLayer) {
	var err error
	if l.key, err = l.keyOf(records, o); err != nil {
		return none
	}
	found, _ := l.findLayer(o.Workspace, l.run.gate.kept.Find)
	if found == nil {
		return none
	}
	if found.Info.Run == l.run.info.ID {
		_ = found.Close()
		return none
	}
	l.used = found
	return order.FoundSetupLayer{Layer: layerOf(found.Info), File: found.File}
}

// Keep implements order.Layers.
func (l *baseLayers) Keep(context.Context, order.Runner, []proposal.Record) *proposal.Layer {
	return nil
}
