// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"io"
	"maps"
	"os"
	"time"

	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Runner is the sandbox of one run: internal/sandbox's Runner, or a test's.
type Runner interface {
	// Prepare makes the sandbox ready for x, for which the next Run is, or if beside is set the next Start. It
	// starts nothing.
	Prepare(x sandbox.Execution, beside bool)
	// Run runs x to its end. An error means that the outcome is unknown.
	Run(ctx context.Context, x sandbox.Execution) (proposal.Result, error)
	// Start starts x beside the commands of Run. A command that does not start is a Process
	// that has ended; an error means the same as Run's. Close ends it.
	Start(ctx context.Context, x sandbox.Execution) (sandbox.Process, error)
	// Earlier returns what the live shell of a context has run, or nil if there is none.
	Earlier(language, context string) *proposal.Earlier

	// The next six move files between two commands of a session. The Result's Outputs and Changes
	// describe what they did; files that are not available are refused there. An error means the
	// same as Run's.

	// Put writes a file of the workspace.
	Put(ctx context.Context, path string, data []byte) (proposal.Result, error)
	// PutPart writes to the end of a file of the workspace.
	PutPart(ctx context.Context, path string, data []byte) (proposal.Result, error)
	// Take copies a file out, to the path called name among the artifacts.
	Take(ctx context.Context, name, path string) (proposal.Result, error)
	// TakePart is Take for the bytes of a file from offset, size at most.
	TakePart(ctx context.Context, name, path string, offset, size int64) (proposal.Result, error)
	// List lists the files that match pattern in the Result's Changes.
	List(ctx context.Context, pattern string) (proposal.Result, error)
	// ListChanges lists in the Result's Changes how the workspace differs from the one that the run began with, or
	// that set-up left.
	ListChanges(ctx context.Context) (proposal.Result, error)
	// AddChanges adds what has changed to the Result of a command in the background that has ended, unless another
	// one runs.
	AddChanges(p sandbox.Process, result *proposal.Result) error
	// Diff compares the files at paths, or all, with those that the run began with. Their
	// contents are copied as Take does, and have no Text yet.
	Diff(ctx context.Context, name string, paths []string) (proposal.Diff, error)

	// Pause stops every process, and Resume lets those in the background go on. An error means the same as
	// Run's.
	Pause() error
	Resume() error

	// Save saves the sandbox between two commands. An error with the code sandbox.save changes nothing; any other
	// means the same as Run's.
	Save(ctx context.Context) (*sandbox.Saved, error)
	// Begin starts the sandbox before the first command. An error means the same as Run's.
	Begin(ctx context.Context) error

	SetupFiles
	Close() error
}

// SetupFiles are what Layers makes a layer of: see package sandbox.
type SetupFiles interface {
	Reads(ctx context.Context, before string) ([]sandbox.Read, error)
	Export(context.Context, sandbox.LayerBounds, func(sandbox.LayerFile, io.Reader) error) error
	UseLayer(*os.File)
}

// StartSandbox is Stages.Start for commands that run.
func StartSandbox(o sandbox.Options) (Runner, error) {
	runner, err := sandbox.New(o)
	if err != nil {
		return nil, err // not a nil pointer in it
	}
	return runner, nil
}

// A Network is the gateway of one run: package gate's, or a test's. Its errors
// are StopErrors and end the run.
type Network interface {
	// Open creates the network link for a sandbox of o. It is called before the sandbox is
	// created, if a command that will run was granted an entry, or Stages.NetworkAlways is set;
	// granted is the list of all such entries. Without it no other method is called. It is called
	// again for the sandbox of the base, after that of the pull request's code has ended.
	Open(ctx context.Context, granted []string, o sandbox.Options) (Link, error)
	// Begin allows x, and only x, as much as x.Grant says: the grants of other commands
	// no longer apply. It is called before every command, including those without a
	// grant of a host, so that their attempts are attributed to them. stop ends x because of a
	// *proposal.StopError, once and until End.
	Begin(ctx context.Context, x sandbox.Execution, stop context.CancelCauseFunc) error
	// End closes every connection of the command, and returns when all events about
	// them have been delivered. It is called once after each successful Begin, when
	// nothing of the command runs any more.
	End() error
}

// A Link is what a sandbox needs to use a Network.
type Link struct {
	Netns string            // of sandbox.Options
	Ready func() error      // NetnsReady of sandbox.Options
	Env   map[string]string // variables to set
	Unset []string          // variables to remove, after that
	Files map[string][]byte // in the root
	Home  map[string]string // in HOME
	Binds []sandbox.Bind    // after those that there are
}

// addTo adds l to o, and changes nothing that o shares. A nil Link is no network.
func (l *Link) addTo(o *sandbox.Options) {
	if l == nil {
		return
	}
	o.Netns, o.NetnsReady = l.Netns, l.Ready
	o.Env, o.Files, o.Home = mergeMaps(o.Env, l.Env), mergeMaps(o.Files, l.Files), mergeMaps(o.Home, l.Home)
	for _, name := range l.Unset {
		delete(o.Env, name)
	}
	o.Binds = append(o.Binds[:len(o.Binds):len(o.Binds)], l.Binds...)
}

// mergeMaps returns a new map with the entries of all.
func mergeMaps[V any](all ...map[string]V) map[string]V {
	one := map[string]V{}
	for _, m := range all {
		maps.Copy(one, m)
	}
	return one
}

// Health counts the sandboxes of servers. Its methods are called from any goroutine and must be fast.
type Health interface {
	// Started is called when a sandbox has started, or could not because of err, with the time
	// that took, and Ended when one that started is gone.
	Started(took time.Duration, err error)
	Ended()
	// Ready is called when the first sandbox of a session has started, with the time from
	// Bounds.Requested, except for the time between Open and the first command.
	Ready(took time.Duration)
}
