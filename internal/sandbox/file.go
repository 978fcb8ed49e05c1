// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// outputsOf returns the artifacts directory for the outputs of name.
func outputsOf(name string) string { return name + ".outputs" }

// Put writes data to a new or existing regular file of the workspace, between two
// commands. It makes missing directories; everything new belongs to the commands' user.
// The Result has the Changes and one Output, which is refused if the file cannot be
// written. An error ends the Runner, as in Run.
func (r *Runner) Put(ctx context.Context, path string, data []byte) (proposal.Result, error) {
	return r.writeData(ctx, writeWhole, path, data)
}

// PutPart is Put, but writes to the end of a file that is there.
func (r *Runner) PutPart(ctx context.Context, path string, data []byte) (proposal.Result, error) {
	return r.writeData(ctx, writeEnd, path, data)
}

func (r *Runner) writeData(ctx context.Context, verb writeVerb, path string, data []byte) (proposal.Result, error) {
	return r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) (err error) {
		out := proposal.Output{Path: path, Bytes: int64(len(data))}
		switch {
		case !isLocalPath(path):
			out.Refused = "not a path inside the workspace"
		case len(data) > maxOutput:
			out.Refused = "larger than " + proposal.Bytes(maxOutput).String()
		default:
			out.Refused, err = s.init.writeFile(verb, path, data)
		}
		result.Outputs = append(result.Outputs, out)
		if err == nil {
			result.Changes, err = s.init.listChanges()
		}
		return err
	})
}

// Take copies the regular file at path to Artifacts/NAME.outputs. The Result has one
// Output. name must be used by no command and no other Take.
func (r *Runner) Take(ctx context.Context, name, path string) (proposal.Result, error) {
	return r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) error {
		f := proposal.Change{Path: path, Type: "file"}
		result.Outputs = append(result.Outputs, s.copyOutput(newSide, outputsOf(name), f))
		return nil
	})
}

// TakePart is Take for the bytes of a file from an offset, size at most.
func (r *Runner) TakePart(ctx context.Context, name, path string, offset, size int64) (proposal.Result, error) {
	return r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) error {
		result.Outputs = append(result.Outputs, s.copyOutputPart(name, path, offset, size))
		return nil
	})
}

// List returns as Changes the files of the workspace that match pattern, in the syntax of path.Match, with
// one ** for any number of directories: at most 10,000; the rest is counted. An invalid pattern matches
// nothing.
func (r *Runner) List(ctx context.Context, pattern string) (proposal.Result, error) {
	return r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) (err error) {
		result.Changes, err = s.init.listFiles(pattern, maxList)
		var refused *refusal
		if errors.As(err, &refused) {
			return nil
		}
		return err
	})
}

const maxList = 10_000

// ListChanges returns as Changes how the workspace differs from the one that the sandbox began with, or that
// set-up left. Changes that commands in the background made stay those of the next command, too.
func (r *Runner) ListChanges(ctx context.Context) (proposal.Result, error) {
	return r.doBetweenCommands(ctx, func(s *instance, result *proposal.Result) (err error) {
		result.Changes, err = s.init.listTotalChanges()
		return err
	})
}

// doBetweenCommands calls do in the sandbox while no command runs.
func (r *Runner) doBetweenCommands(
	ctx context.Context, do func(*instance, *proposal.Result) error,
) (proposal.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := proposal.Result{Status: proposal.Exited, Outputs: []proposal.Output{},
		Changes: proposal.Changes{Files: []proposal.Change{}}}
	if r.ended != nil {
		return failedResult(r.ended), r.ended
	}
	fresh, err := r.ensureRunning(ctx, false)
	if err == nil {
		result.NewSandbox, r.current.used = fresh, true
		err = r.current.doWhileStopped(func() error { return do(r.current, &result) })
	}
	if err != nil {
		r.ended = newStopError("sandbox.files", fmt.Sprintf("cannot reach the sandbox's files: %v", err),
			"run fumehood doctor", err)
		return failedResult(r.ended), errors.Join(r.ended, r.closeCurrent())
	}
	return result, nil
}
