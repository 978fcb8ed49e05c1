// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The bounds of a report's Differences.
const (
	maxCompared     = 100       // files
	maxComparedSize = 256 << 10 // bytes of a file
	maxDifference   = 64 << 10  // bytes of one text
	maxDifferences  = 512 << 10 // bytes of all texts
)

// compareWorkspace adds to the report how the commands left the workspace of the last sandbox: changes
// in one that ended before are lost, and what set-up changed is not part of it. It copies
// nothing if no command changed a file.
func (s *Session) compareWorkspace(ctx context.Context) error {
	for _, r := range s.records {
		switch {
		case r.Result == nil:
		case r.Proposal.Origin == "":
			s.addChanges(*r.Result)
		case r.Result.NewSandbox: // what commands before set-up changed is lost
			s.addChanges(proposal.Result{NewSandbox: true})
		}
	}
	paths, omitted := comparedPaths(s.Changes())
	if s.runner == nil || len(paths)+omitted == 0 {
		return nil
	}
	var d proposal.Diff
	if len(paths) > 0 {
		var err error
		// no proposal ID contains a tilde
		if d, err = s.diffFiles(context.WithoutCancel(ctx), "~1", paths,
			redact.DiffBounds{File: maxDifference, All: maxDifferences}); err != nil {
			return err
		}
	}
	found := differencesOf(d)
	found.Omitted += omitted
	s.report.Differences = &found
	_, err := s.stages.Log.Append("transfer", transferOf(found, len(s.records)))
	return err
}

// comparedPaths returns the files of changes that are compared, and how many other paths there are:
// a directory that was removed may have had any number of files.
func comparedPaths(changes proposal.Changes) (paths []string, omitted int) {
	omitted = changes.Omitted
	for _, c := range changes.Files {
		switch {
		case c.Type == "dir" && c.Kind != "removed":
		case c.Type != "dir" && len(paths) < maxCompared && c.Bytes <= maxComparedSize:
			paths = append(paths, c.Path)
		default:
			omitted++
		}
	}
	return paths, omitted
}

// diffFiles compares the files at paths, redacted and within bounds.
func (s *Session) diffFiles(
	ctx context.Context, name string, paths []string, bounds redact.DiffBounds,
) (proposal.Diff, error) {
	d, err := s.runner.Diff(ctx, name, paths)
	if err != nil {
		return proposal.Diff{}, err
	}
	return s.stages.Redactor.Diff(ctx, name, d, bounds)
}

// differencesOf returns what a report has of d.
func differencesOf(d proposal.Diff) proposal.Differences {
	out := proposal.Differences{Files: []proposal.Difference{}, Omitted: d.Omitted, Patch: d.Patch}
	for _, f := range d.Files {
		out.Files = append(out.Files, proposal.Difference{Path: f.Path, Kind: f.Kind, Text: f.Text, Note: f.Note})
	}
	return out
}

// transferOf returns the entry of the log that binds d, after a number of proposals.
func transferOf(d proposal.Differences, after int) proposal.Transfer {
	return proposal.Transfer{Kind: transferDiff, After: after, Output: d.Patch, Names: len(d.Files)}
}
