// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Local describes a review of two commits of a repository on this machine.
type Local struct {
	Repository string // a directory of a clone; its work tree and settings have no effect
	Base, Head string // revisions; the base is the merge base of the two
	// Open makes a Gate for the tree in dir. trusted is the directory with the tree of the base,
	// whose configuration and policy apply. With gate.Options.Repeated, set-up runs once for each
	// Gate where what it left can be a private layer, otherwise once for each run.
	Open func(dir, trusted string) (*gate.Gate, error)
}

// LimitSubject names what the limits of a pull request apply to: the pull request of a repository, or
// where number is 0 the head in its directory.
func (l Local) LimitSubject(repository string, number int) string {
	if number != 0 {
		return fmt.Sprintf("%s#%d", repository, number)
	}
	dir, err := filepath.Abs(l.Repository)
	if err != nil {
		dir = l.Repository
	}
	return dir + "\n" + l.Head
}

// VerifyFindings verifies findings about l. A Document without Schema means that nothing ran.
func (l Local) VerifyFindings(ctx context.Context, findings proposal.ReviewFindings) (Document, error) {
	return l.withTrees(ctx, func(c *commits, diff *Diff) (Document, error) {
		d, err := Verify(ctx, c, diff, findings)
		d.Base, d.Head = c.base, c.head
		return d, err
	})
}

// withTrees calls f with the trees of l, which are removed afterwards.
func (l Local) withTrees(ctx context.Context, f func(*commits, *Diff) (Document, error)) (d Document, err error) {
	repository, err := checkout.OpenLocal(ctx, l.Repository)
	if err != nil {
		return d, err
	}
	defer repository.Close()
	dir, err := os.MkdirTemp("", "fumehood-review-")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := &commits{local: repository, dir: dir, open: l.Open, gates: map[string]*gate.Gate{}}
	defer func() { err = errors.Join(err, c.closeGates()) }()
	diff, err := c.prepareTrees(ctx, l)
	if err != nil {
		return d, err
	}
	return f(c, diff)
}

// commits are the Trees of two commits. Each side is written once, and has a Gate of its own.
type commits struct {
	base, head string // full ids
	local      *checkout.Local
	dir        string
	open       func(dir, trusted string) (*gate.Gate, error)
	gates      map[string]*gate.Gate // by side
	diff       []byte                // from base to head
	applied    string                // the finding whose suggestion is on SideSuggested
}

// prepareTrees writes both trees, makes their gates and compares the commits.
func (c *commits) prepareTrees(ctx context.Context, l Local) (*Diff, error) {
	if err := c.resolveCommits(ctx, l); err != nil {
		return nil, err
	}
	var err error
	if c.diff, err = c.local.Diff(ctx, c.base, c.head); err != nil {
		return nil, err
	}
	diff, err := ParseDiff(c.diff)
	if err != nil {
		return nil, err
	}
	for side, sha := range map[string]string{SideBase: c.base, SideHead: c.head} {
		if _, err := c.local.Write(ctx, sha, c.treePath(side), checkout.Limits{}); err != nil {
			return nil, err
		}
	}
	for _, side := range []string{SideBase, SideHead} {
		if c.gates[side], err = c.open(c.treePath(side), c.treePath(SideBase)); err != nil {
			delete(c.gates, side)
			return nil, err
		}
	}
	return diff, nil
}

func (c *commits) resolveCommits(ctx context.Context, l Local) (err error) {
	if c.head, err = c.local.Commit(ctx, l.Head); err != nil {
		return err
	}
	if c.base, err = c.local.Commit(ctx, l.Base); err != nil {
		return err
	}
	c.base, err = c.local.MergeBase(ctx, c.base, c.head)
	return err
}

func (c *commits) treePath(side string) string { return filepath.Join(c.dir, side) }

// batch is how many commands a plan has where no set-up precedes each of them.
const batch = 50

// Batch implements Trees. A new sandbox may have nothing of the set-up before, so that a command
// with set-up needs a run of its own.
func (c *commits) Batch() int {
	for _, g := range c.gates {
		if g.HasSetup() {
			return 1
		}
	}
	return batch
}

// Run implements Trees.
func (c *commits) Run(ctx context.Context, side string, plan proposal.Plan) (proposal.Report, error) {
	return c.gates[side].Run(ctx, c.withoutFresh(plan))
}

// withoutFresh lets the only command of a plan use the sandbox of its set-up, which is new.
func (c *commits) withoutFresh(plan proposal.Plan) proposal.Plan {
	if c.Batch() == 1 {
		plan.Proposals = slices.Clone(plan.Proposals)
		for i := range plan.Proposals {
			plan.Proposals[i].Fresh = false
		}
	}
	return plan
}

// Suggested implements Trees.
func (c *commits) Suggested(
	ctx context.Context, f proposal.ReviewFinding, plan proposal.Plan,
) (proposal.Report, error) {
	if c.applied != f.ID {
		if err := c.applySuggestion(ctx, f); err != nil {
			return proposal.Report{}, err
		}
	}
	return c.Run(ctx, SideSuggested, plan)
}

// applySuggestion writes the tree of head with the suggestion of f in place of that of another finding, and
// makes its gate.
func (c *commits) applySuggestion(ctx context.Context, f proposal.ReviewFinding) (err error) {
	dir := c.treePath(SideSuggested)
	if g := c.gates[SideSuggested]; g != nil {
		delete(c.gates, SideSuggested)
		err = g.Close()
	}
	if c.applied, err = "", errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	if _, err := c.local.Write(ctx, c.head, dir, checkout.Limits{}); err != nil {
		return err
	}
	if err := applySuggestion(dir, f); err != nil {
		return &Unsuitable{"it cannot be applied: " + err.Error()}
	}
	g, err := c.open(dir, c.treePath(SideBase))
	if err != nil {
		return err
	}
	c.gates[SideSuggested], c.applied = g, f.ID
	return nil
}

func (c *commits) closeGates() (err error) {
	for _, g := range c.gates {
		err = errors.Join(err, g.Close())
	}
	return err
}
