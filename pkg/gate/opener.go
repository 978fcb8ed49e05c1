// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Opener decides proposals and has one session at a time: a *Gate, or the client of one in
// another process. Close closes the session that is open.
type Opener interface {
	Check(ctx context.Context, plan proposal.Plan) ([]proposal.Record, error)
	Open(ctx context.Context, o SessionOptions) (Session, error)
	Close() error
}

// A Session is one sandbox, one log and one policy for proposals that come one after the
// other. Files that a command leaves in the workspace, HOME and /tmp are there for the
// next; its processes are not. Start runs commands in the background, beside others. Its
// methods are safe for concurrent use: each waits until earlier calls have returned, so none
// may be called from Options.Progress. Only code with a Context does not block others: see Do.
//
// If a command had to be killed together with its sandbox, or a proposal sets Fresh, the
// files written before are lost: the Result's NewSandbox says so.
//
// Gate.Open returns one in this process, package session/remote one in another process.
type Session interface {
	// ID returns the run's id, as the report has it.
	ID() string

	// Log returns the path of the audit log.
	Log() string

	// Artifacts returns the directory with the files that Take and Diff have copied.
	Artifacts() string

	// SetUp decides and runs the commands of Options.Setup that have not run in this session,
	// in order, and calls each, which may be nil, with each Record. Their failures are values,
	// as for Do. Call it before each Do, with what is to be done: nothing runs for a command that
	// only reads the repository, such as git log, unless a layer of an earlier run replaces the
	// commands. The zero Proposal needs all of them: call it with that before Put. After Put, or a
	// command that may write, set-up is refused its registries. Without a call the session has no
	// set-up.
	SetUp(ctx context.Context, before proposal.Proposal, each func(proposal.Record)) error

	// Do decides p, writes the decision to the log, and runs p if it is allowed. If ctx
	// ends, the command is killed, its Result says so, and the session continues.
	//
	// Code with a Context runs in an interpreter that keeps its state for later code of the same
	// language and context; the first such code starts it. It has p's Env while it runs. If the
	// code does not stop when it must, or the interpreter ends, its state is lost, and the next
	// code starts another.
	//
	// Such code runs beside commands, transfers of files and code of other contexts, as Start's commands do. It waits
	// for earlier code of its language and context, a command with a Network waits for all code, and SetUp does. Before
	// all of set-up has run, with services, or if eight run already, it has the session for itself.
	//
	// Code of bash or sh in a Context is decided as the end of a script that begins with all code
	// that the context's shell has run, see proposal.Earlier: a question about that is asked again.
	// Every code of the Context must have the same Env. A shell that is interrupted ends.
	//
	// p is checked like a proposal of a plan. Denied, failed and killed commands are values
	// in the Record. An error is a *proposal.StopError, or ctx's while p waited for its
	// turn: either p was not accepted (session.proposal), or the session is over, and every
	// later call fails too.
	Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error)

	// DoApproved is Do for a proposal that the caller's client approves, see
	// proposal.ClientApproval: if policy asks about p, it runs. a is what Asked returned for p,
	// with Client and Time. If it no longer applies, nothing runs (approval.void).
	//
	// The caller answers for the client: this method cannot know whether anyone was asked.
	DoApproved(ctx context.Context, p proposal.Proposal, a proposal.ClientApproval) (proposal.Record, error)

	// Asked returns what an approval of p must be bound to now: see DoApproved. p's ID does
	// not matter.
	Asked(ctx context.Context, p proposal.Proposal) (proposal.ClientApproval, error)

	// Start decides p, writes the decision to the log, and starts p in the background if it is
	// allowed. It returns when the command has started; a command that is not allowed, or cannot
	// start, is a Process that has ended. Other commands and code run meanwhile, and up to
	// eight in the background. ctx is for the decision and the start, and for WithOutput.
	//
	// Policy decides every program that the command starts, with the command's own grants, and its
	// Record has its own events, whatever else runs. When its first process ends, Kill is called,
	// its time, output or events are used up, or the session ends, all its processes are killed,
	// daemons included.
	//
	// p cannot have outputs, a context, a network or a new sandbox (session.proposal), and while
	// commands run in the background, none is granted a network. Its Stdin is all its input: what
	// comes later could not be decided. Files that it changes are among the changes of later
	// commands. Memory, processes and disk are the session's: the largest limits of the commands
	// that run apply to all of them together. A command that is stopped because of memory takes
	// the sandbox with it: each Result says so.
	//
	// A session in which only commands in the background run, for which nothing waits, is idle: see
	// SessionOptions.Idle.
	//
	// The error is as for Do. One more is session.background: too many run already, SetUp was called
	// and has not run all of set-up, or it has services, which are stopped between commands in the
	// foreground.
	Start(ctx context.Context, p proposal.Proposal) (Process, error)

	// Put writes data to name, a path relative to the workspace. A file that cannot be
	// written is refused in the Output. The error is as for Do.
	Put(ctx context.Context, name string, data []byte) (proposal.Output, error)

	// PutPart is Put, but writes data to the end of name, a regular file that is there.
	PutPart(ctx context.Context, name string, data []byte) (proposal.Output, error)

	// Take returns the regular file name of the workspace with secrets redacted, as far as
	// policy allows it to leave. Output says what was redacted, or why the file is refused. A
	// copy is among the artifacts. The error is as for Do.
	Take(ctx context.Context, name string) ([]byte, proposal.Output, error)

	// TakePart is Take for the bytes of the file from offset, size at most: at the end of the file fewer, and none
	// after it. Each part is searched and decided alone, so that a secret at the border of two is not found. No copy is
	// kept.
	TakePart(ctx context.Context, name string, offset, size int64) ([]byte, proposal.Output, error)

	// List returns the files of the workspace that match pattern, in the syntax of
	// path.Match and with one ** for any number of directories, as Changes without a Kind. The
	// error is as for Do.
	List(ctx context.Context, pattern string) (proposal.Changes, error)

	// Changes returns the changes that commands and Put made to the workspace since the sandbox
	// was created; if commands ran in the background, since the session began, or since SetUp. If Omitted
	// is not 0, the list is incomplete. The error is as for Do.
	Changes(ctx context.Context) (proposal.Changes, error)

	// Diff returns how the workspace differs from the one that the session began with, or that
	// SetUp left, with the contents of text files of at most 1 MiB, 8 MiB of text and 1,000 files
	// together; other files are described by their size, mode and digest. paths are files and
	// directories relative to the workspace, at most 100; all if there are none. Secrets are
	// redacted, and a file that policy does not let out is described only. Patch.File is the path
	// of the file with all texts. The error is as for Do.
	Diff(ctx context.Context, paths ...string) (proposal.Diff, error)

	// Pause stops every process of the session when the running command has ended; ctx is for the wait.
	// Memory and files stay, and commands in the background have as much of their time left as before.
	// The session stays open for SessionOptions.Paused without calls, and its Lifetime goes on. Resume,
	// Do and Start let the processes go on. The log has both. Calls about files do not resume it. The
	// error is as for Do.
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error

	// Close kills a running command, ends the sandbox, seals the log and returns the report.
	// The report omits commands' output, except for its length and digest. The error says
	// why the session stopped early, if it did. Later calls return the same.
	Close() (proposal.Report, error)

	// Done is closed when the session has ended, for any reason.
	Done() <-chan struct{}
}

// A Process is a command that Session.Start started. Its methods are safe for concurrent use,
// do not wait for other calls of the Session, and do nothing once the command has ended.
type Process interface {
	// Done is closed when the command has ended and its result is in the log.
	Done() <-chan struct{}

	// Wait waits until Done is closed and returns the Record, as Do does, or ctx's error.
	Wait(ctx context.Context) (proposal.Record, error)

	// Interrupt sends SIGINT to every process of the command, as Ctrl-C does in a terminal.
	Interrupt() error

	// Kill kills every process of the command. It does not wait for its end.
	Kill()
}
