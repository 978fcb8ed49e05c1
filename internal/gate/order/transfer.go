// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The kinds of a proposal.Transfer.
const (
	transferPut  = "put"
	transferTake = "take"
	transferList = "list"
	transferDiff = "diff"
	// Of these two the rest is empty.
	transferPause  = "pause"
	transferResume = "resume"
	// Of this one, Output has the name and the size.
	transferSnapshot = "snapshot"
	transferPart     = "part" // recorded as transferTake, without a file
)

// MaxTransfers is the maximum number of files and lists that one session moves. A pause or a snapshot counts as one.
const MaxTransfers = 10_000

// maxDigested is the maximum size of a file whose digest Put reports: the digest of one that has a secret would confirm
// a guess, and to search a large one takes longer than to write it.
const maxDigested = 1 << 20

// Put writes data to path, which is relative to the workspace, as the commands' user. A
// file that could not be written is refused in the Output, and so is one that policy would not
// let a command copy there. The error is as for Do.
func (s *Session) Put(ctx context.Context, path string, data []byte) (proposal.Output, error) {
	return s.writeRecorded(ctx, path, data, Runner.Put)
}

// PutPart is Put, but writes to the end of a file that is there.
func (s *Session) PutPart(ctx context.Context, path string, data []byte) (proposal.Output, error) {
	return s.writeRecorded(ctx, path, data, Runner.PutPart)
}

func (s *Session) writeRecorded(ctx context.Context, path string, data []byte,
	write func(Runner, context.Context, string, []byte) (proposal.Result, error)) (proposal.Output, error) {
	t, _, err := s.moveRecorded(ctx, transferPut, func(ctx context.Context, _ string) (proposal.Result, error) {
		if why, err := s.refusalOfPlace(ctx, path); err != nil || why != "" {
			return proposal.Result{Outputs: []proposal.Output{{Path: path, Refused: why}}}, err
		}
		r, err := write(s.runner, ctx, path, data)
		if len(r.Outputs) == 1 && len(data) <= maxDigested && s.stages.Redactor.Text(string(data)) == string(data) {
			sum := sha256.Sum256(data)
			r.Outputs[0].SHA256 = hex.EncodeToString(sum[:])
		}
		return r, err
	})
	return t.Output, err
}

// refusalOfPlace returns why policy would not let a command copy a file to path, or "".
func (s *Session) refusalOfPlace(ctx context.Context, path string) (why string, err error) {
	if !filepath.IsLocal(path) {
		return "", nil // the sandbox refuses it
	}
	p := proposal.Proposal{ID: "put", Argv: []string{"cp", "--", "/tmp/upload", "./" + filepath.ToSlash(path)}}
	records, err := s.stages.Check(ctx, proposal.Plan{Proposals: []proposal.Proposal{p}})
	if d := records[0].Decision; d.Effect != proposal.Allow {
		why = "denied by policy"
		if len(d.Reasons) > 0 {
			why = fmt.Sprintf("%s (%s)", d.Reasons[0].Message, d.Reasons[0].Rule)
		}
	}
	return why, err
}

// Take copies the file at path out, as far as policy allows it to leave. Output.File is
// its path, relative to the artifacts. The error is as for Do.
func (s *Session) Take(ctx context.Context, path string) (proposal.Output, error) {
	t, _, err := s.moveRecorded(ctx, transferTake, func(ctx context.Context, name string) (proposal.Result, error) {
		return s.runner.Take(ctx, name, path)
	})
	return t.Output, err
}

// TakePart is Take for the bytes of the file from an offset, size at most. Each part is decided, redacted and recorded
// as a file. The caller removes its copy, which the log does not name.
func (s *Session) TakePart(ctx context.Context, path string, offset, size int64) (proposal.Output, error) {
	_, r, err := s.moveRecorded(ctx, transferPart, func(ctx context.Context, name string) (proposal.Result, error) {
		return s.runner.TakePart(ctx, name, path, offset, size)
	})
	if err != nil {
		return proposal.Output{}, err
	}
	return r.Outputs[0], nil
}

// List returns the files of the workspace that match pattern, with secrets in their names
// redacted. The error is as for Do.
func (s *Session) List(ctx context.Context, pattern string) (proposal.Changes, error) {
	_, r, err := s.moveRecorded(ctx, transferList, func(ctx context.Context, _ string) (proposal.Result, error) {
		r, err := s.runner.List(ctx, pattern)
		r.Outputs = []proposal.Output{{Path: pattern}}
		return r, err
	})
	return r.Changes, err
}

// Diff compares the workspace with the one that the session began with, or that its set-up
// left: the files at paths, or all. The Patch's File is relative to the artifacts. The error
// is as for Do.
func (s *Session) Diff(ctx context.Context, paths []string) (d proposal.Diff, err error) {
	if s.runner == nil && s.stopped == nil {
		return proposal.Diff{Files: []proposal.FileDiff{}}, nil // nothing has run
	}
	err = s.recordTransfer(transferDiff, func(name string, t *proposal.Transfer) error {
		d, err = s.diffFiles(context.WithoutCancel(ctx), name, paths, redact.DiffBounds{})
		d.Patch.Path = s.stages.Redactor.Text(strings.Join(paths, " "))
		t.Output, t.Names = d.Patch, len(d.Files)
		return err
	})
	if err != nil {
		d = proposal.Diff{}
	}
	return d, err
}

// moveRecorded moves something, applies the Redactor to it, and records it.
func (s *Session) moveRecorded(
	ctx context.Context, kind string, move func(ctx context.Context, name string) (proposal.Result, error),
) (t proposal.Transfer, r proposal.Result, err error) {
	err = s.recordTransfer(kind, func(name string, given *proposal.Transfer) error {
		if r, err = s.moveFiles(context.WithoutCancel(ctx), name, move); err != nil {
			return err
		}
		given.Output = r.Outputs[0]
		switch kind {
		case transferList:
			given.Names = len(r.Changes.Files) + r.Changes.Omitted
		case transferPart:
			given.Kind, given.Output.File = transferTake, ""
			s.addChanges(r)
		default:
			s.addChanges(r)
		}
		t = *given
		return nil
	})
	if err != nil {
		return proposal.Transfer{Kind: kind}, proposal.Result{}, err
	}
	return t, r, nil
}

// recordTransfer calls move, which describes the transfer, and records it. name is unique.
func (s *Session) recordTransfer(kind string, move func(name string, t *proposal.Transfer) error) error {
	if s.stopped == nil {
		s.stopped = s.collectBackground(false)
	}
	if s.stopped != nil {
		return s.stopped
	}
	if len(s.report.Transfers) >= MaxTransfers && kind != transferResume { // what is paused can always go on
		return &proposal.StopError{Code: "session.full",
			Message: fmt.Sprintf("the session has reached its limit of %d transfers", MaxTransfers),
			Hint:    "open another session"}
	}
	if kind == transferPut {
		s.changing++
		s.written = true
	}
	t := proposal.Transfer{Kind: kind, After: len(s.records)}
	err := move(fmt.Sprintf("~%d", len(s.report.Transfers)+1), &t) // no proposal ID contains a tilde
	if err == nil {
		_, err = s.stages.Log.Append("transfer", t)
	}
	if s.stopped = err; err == nil {
		s.report.Transfers = append(s.report.Transfers, t)
	}
	return err
}

// moveFiles calls move in the sandbox and redacts what it returns.
func (s *Session) moveFiles(
	ctx context.Context, name string, move func(context.Context, string) (proposal.Result, error),
) (proposal.Result, error) {
	if err := s.ensureSandbox(ctx); err != nil {
		return proposal.Result{}, err
	}
	r, err := move(ctx, name)
	if err == nil && len(r.Outputs) != 1 {
		err = fmt.Errorf("internal error: %d files moved", len(r.Outputs))
	}
	if err != nil {
		return r, err
	}
	return s.stages.Redactor.Result(ctx, name, r)
}

// addChanges adds the changes in r to the session's list. A new sandbox starts with the
// original workspace.
func (s *Session) addChanges(r proposal.Result) {
	if r.NewSandbox || s.changes == nil {
		s.changes, s.omitted = map[string]proposal.Change{}, 0
	}
	s.omitted += r.Changes.Omitted
	for _, c := range r.Changes.Files {
		before, known := s.changes[c.Path]
		switch {
		case known && before.Kind == "added" && c.Kind == "removed":
			delete(s.changes, c.Path)
			continue
		case known && before.Kind == "added":
			c.Kind = "added"
		case known && before.Kind == "removed" && c.Kind == "added":
			c.Kind = "changed"
		}
		s.changes[c.Path] = c
	}
}

// ListChanges is Changes, unless commands ran in the background, whose changes no result has: then it looks at the
// workspace, and returns what has changed since the session began, or since its set-up. The error is as for Do.
func (s *Session) ListChanges(ctx context.Context) (proposal.Changes, error) {
	if !s.beside {
		return s.Changes(), nil
	}
	_, r, err := s.moveRecorded(ctx, transferList, func(ctx context.Context, _ string) (proposal.Result, error) {
		r, err := s.runner.ListChanges(ctx)
		r.Outputs = []proposal.Output{{Path: "."}}
		return r, err
	})
	return r.Changes, err
}

// Changes returns the changes to the workspace since the session's sandbox was created,
// by path. If Omitted, which counts unlisted changes, is not 0, the list is incomplete.
func (s *Session) Changes() proposal.Changes {
	list := proposal.Changes{Files: []proposal.Change{}, Omitted: s.omitted}
	for _, path := range slices.Sorted(maps.Keys(s.changes)) {
		list.Files = append(list.Files, s.changes[path])
	}
	return list
}
