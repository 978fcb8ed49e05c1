// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Limits on a Diff. What exceeds them is counted, or described without its content.
const (
	maxDiffFiles = 1000
	maxDiffBytes = 64 << 20 // of all files before and after
)

// Diff compares the workspace with the one below it: what commands and Put changed since the
// sandbox was created, except for commands with Execution.Setup. paths are files and
// directories to compare; all if there are none. The contents of files, before and after, are
// copied to Artifacts/NAME.outputs; name is as for Take. The FileDiffs have no Text yet. An
// error ends the Runner, as in Run. Without a running sandbox the Diff is empty: the next one
// begins with the original workspace.
func (r *Runner) Diff(ctx context.Context, name string, paths []string) (d proposal.Diff, err error) {
	if r.isIdle() {
		return proposal.Diff{Files: []proposal.FileDiff{}}, nil
	}
	_, err = r.doBetweenCommands(ctx, func(s *instance, _ *proposal.Result) error {
		d, err = s.diffPaths(name, paths)
		return err
	})
	return d, err
}

// isIdle reports whether r is usable and has no running sandbox.
func (r *Runner) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended == nil && (r.current == nil || r.current.isDead())
}

func (s *instance) diffPaths(name string, paths []string) (proposal.Diff, error) {
	d := proposal.Diff{Files: []proposal.FileDiff{}}
	total, err := s.init.listTotalChanges()
	if err != nil {
		return d, err
	}
	d.Omitted = total.Omitted
	left := int64(maxDiffBytes)
	for _, c := range total.Files {
		switch {
		case !isSelectedPath(c.Path, paths):
			continue
		case len(d.Files) >= maxDiffFiles:
			d.Omitted++
			continue
		}
		f, err := s.compareFile(name, c.Path, &left)
		if err != nil {
			return d, err
		}
		if f.Old != nil || f.New != nil {
			d.Files = append(d.Files, f)
		}
	}
	return d, nil
}

// isSelectedPath reports whether name is one of paths or below one.
func isSelectedPath(name string, paths []string) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
		p = path.Clean(p)
		return p == "." || name == p || strings.HasPrefix(name, p+"/")
	})
}

// compareFile returns a path before and after. Directories are not compared.
func (s *instance) compareFile(name, path string, left *int64) (proposal.FileDiff, error) {
	f := proposal.FileDiff{Path: path}
	for _, from := range []diffSide{oldSide, newSide} {
		state, err := s.readFileState(from, name, path, left)
		if err != nil {
			return f, err
		}
		if from == oldSide {
			f.Old = state
		} else {
			f.New = state
		}
	}
	switch {
	case f.Old == nil:
		f.Kind = "added"
	case f.New == nil:
		f.Kind = "removed"
	default:
		f.Kind = "changed"
	}
	return f, nil
}

// readFileState returns one side of a path with a copy of its content; nil if there is no file.
func (s *instance) readFileState(from diffSide, name, path string, left *int64) (*proposal.FileState, error) {
	state, err := s.init.describePath(from, path)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return &proposal.FileState{Type: "other", Output: proposal.Output{Path: path, Refused: refused.message}}, nil
	case err != nil || state == nil || state.Type == "dir":
		return nil, err
	case state.Type != "file":
		return state, nil
	case state.Bytes > *left:
		state.Refused = "the files that differ are larger than " + proposal.Bytes(maxDiffBytes).String() + " together"
		return state, nil
	}
	*left -= state.Bytes
	state.Output = s.copyOutput(from, outputsOf(name)+"/"+string(from),
		proposal.Change{Path: path, Type: state.Type, Bytes: state.Bytes})
	return state, nil
}
