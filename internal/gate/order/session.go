// SPDX-License-Identifier: Apache-2.0

package order

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// MaxProposals is the maximum number of proposals in one session.
const MaxProposals = 10_000

// Bounds are the limits for which a session's one sandbox and one gateway are created,
// before the first proposal is known.
type Bounds struct {
	// Limits are the maximum for every command; all are required.
	Limits proposal.Limits
	// Network are the entries that commands may be granted. A proposal that is granted any
	// other is denied (session.network).
	Network []string
	// SetupNetwork are further entries that only proposals of proposal.OriginSetup may be
	// granted, and only before the session has written anything (session.setup).
	SetupNetwork []string
	// Requested is when the caller needed the session, for Stages.Health; zero counts nothing.
	Requested time.Time
	// From is what the session's sandbox begins as a copy of; nil for a new one. Limits must be those of its
	// session, which had no network.
	From *Snapshot
}

// A Session decides and runs proposals of one run as they come, each recorded on disk
// before it runs. Its methods must not be called concurrently.
type Session struct {
	stages   *Stages
	run      proposal.Run
	bounds   Bounds
	report   proposal.Report   // redacted
	records  []proposal.Record // as decided
	known    map[string]bool   // the ids of records that Do added
	probing  probeCounter      // of records that Do added
	runner   Runner            // nil until first needed
	options  sandbox.Options   // of runner
	link     *Link             // to the Network; nil before it is opened
	opened   time.Duration     // from Bounds.Requested until Open returned
	ready    sync.Once         // the first sandbox was counted
	deadline time.Time
	stopped  error // the reason that nothing more runs

	background []*Running // whose results are not in records yet
	beside     bool       // a command has run in the background

	found FoundSetupLayer // for the commands of set-up
	setup map[string]bool // the ids of the commands whose effects a layer would have

	listed   int // events and files in the report
	changing int // commands that ran and files that were put, which approvals are bound to

	// written: a command of a proposer that may write has run, or a file was put
	written bool

	paused bool // see Pause

	changes map[string]proposal.Change // of the workspace, by path
	omitted int
}

// beginSession writes the log's first entry. If it returns no Session, nothing was written.
func (st *Stages) beginSession(run proposal.Run, b Bounds) (*Session, error) {
	if err := st.checkComplete(); err != nil {
		return nil, err
	}
	run.Start = st.Now()
	read := st.ReadFile
	s := &Session{stages: st, run: run, bounds: b,
		report: proposal.Report{Schema: proposal.ReportSchema, Run: st.Redactor.Run(run), Records: []proposal.Record{}},
		known:  map[string]bool{}, probing: probeCounter{}}
	if read != nil {
		st.ReadFile = func(name string) (string, bool) {
			if _, changed := s.changes[name]; changed || s.beside || s.omitted > 0 {
				return "", false // commands may see another file
			}
			return read(name)
		}
	}
	_, err := st.Log.Append("run", s.report.Run)
	return s, err
}

// Open begins a run whose proposals are not known yet. Stages have one run; Close must be
// called. The Report omits the commands' output, except for its length and digest, because
// a session may be long.
func (st *Stages) Open(run proposal.Run, b Bounds) (*Session, error) {
	if b.Limits.Open() {
		return nil, &proposal.StopError{Code: "session.limits", Message: "the session does not set every limit",
			Hint: "set every field of Limits"}
	}
	run.Session = true
	if b.From != nil {
		if err := b.From.checkFits(run); err != nil {
			return nil, err
		}
		run.From = b.From.origin()
	}
	s, err := st.beginSession(run, b)
	if err == nil && b.From != nil {
		err = s.beginWith(context.Background(), b.From)
	}
	if err != nil && s != nil {
		_, err = s.endRun(context.Background(), err)
	}
	if err != nil {
		return nil, err
	}
	if !b.Requested.IsZero() {
		s.opened = st.Now().Sub(b.Requested)
	}
	return s, nil
}

// Do decides p, records the decision, and runs p if it is allowed. If ctx ends, the
// command is killed, its Result says so, and the session continues.
//
// Denied, failed and killed are values in the Record. An error is a *proposal.StopError:
// either p was not accepted (session.proposal), or the session is over, and then every
// later call returns the same error.
func (s *Session) Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error) {
	return s.decideAndRun(ctx, p, nil)
}

// Asked returns what an approval of p by the session's client must be bound to, at this
// moment: everything of it except for Client and Time.
func (s *Session) Asked(p proposal.Proposal) proposal.ClientApproval {
	p = s.withFacts(p)
	return proposal.ClientApproval{Session: s.run.ID, Proposal: p.Digest(), Policy: s.run.Policy, After: s.changing}
}

// DoApproved is Do for a proposal that the session's client approves. If policy asks about
// p, it runs; denied stays denied. An approval of another proposal, policy or session, or
// after which the session has run something, is refused (approval.void): nothing runs, and
// the session continues.
func (s *Session) DoApproved(
	ctx context.Context, p proposal.Proposal, a proposal.ClientApproval,
) (proposal.Record, error) {
	return s.decideAndRun(ctx, p, &a)
}

// withFacts returns p with what is decided with it: what the shell of its context has run, and the files that it
// sources.
func (s *Session) withFacts(p proposal.Proposal) proposal.Proposal {
	p.Earlier = nil
	if s.runner != nil && p.Context != "" && p.RunsShell() {
		p.Earlier = s.runner.Earlier(p.Language, p.Context)
	}
	return s.stages.withSourced(p)
}

func (s *Session) decideAndRun(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval,
) (proposal.Record, error) {
	p = s.withFacts(p)
	if err := s.admitProposal(p, a); err != nil {
		return proposal.Record{}, err
	}
	i := len(s.records)
	err := s.decideOne(ctx, p, a, false)
	if err == nil && s.records[i].Runnable() {
		err = s.runOne(ctx, i)
	}
	s.stopped = err
	record := s.report.Records[i]
	record.Result = s.records[i].Result
	record.Cause = diagnose.CauseOf(record, s.report.Run.Unmet)
	if record.Result != nil {
		s.addChanges(*record.Result)
	}
	s.records[i].Result = s.shortenResult(record.Result)
	return record, err
}

// admitProposal returns why p cannot be proposed now.
func (s *Session) admitProposal(p proposal.Proposal, a *proposal.ClientApproval) error {
	if s.stopped == nil {
		s.stopped = s.collectBackground(false)
	}
	if s.stopped != nil {
		return s.stopped
	}
	if err := s.checkProposal(p); err != nil {
		return err
	}
	if a != nil && !a.Covers(s.Asked(p)) {
		return errVoid
	}
	return s.Resume()
}

var errVoid = &proposal.StopError{Code: "approval.void",
	Message: "the approval is for another command, policy or session, or the session has run something since",
	Hint:    "propose the command again and approve it then"}

// checkProposal refuses proposals that the log could not distinguish.
func (s *Session) checkProposal(p proposal.Proposal) error {
	refuse := func(message, hint string) error {
		return &proposal.StopError{Code: "session.proposal", Message: message, Hint: hint}
	}
	switch {
	case len(s.records) >= MaxProposals:
		return &proposal.StopError{Code: "session.full",
			Message: fmt.Sprintf("the session has reached its limit of %d proposals", MaxProposals),
			Hint:    "open another session"}
	case s.known[p.ID]:
		return refuse(fmt.Sprintf("the id %q was used before", p.ID), "give each proposal its own id")
	}
	for _, id := range p.Needs {
		if !s.known[id] {
			return refuse(fmt.Sprintf("it needs %q, which was not proposed before", id), "name earlier proposals")
		}
	}
	return s.stages.Redactor.RefuseSecretIDs(proposal.Plan{Proposals: []proposal.Proposal{p}})
}

// decideOne decides p and records the decision. It adds a Record of p on every return.
func (s *Session) decideOne(
	ctx context.Context, p proposal.Proposal, a *proposal.ClientApproval, background bool,
) error {
	i := len(s.records)
	records, err := s.stages.Check(context.WithoutCancel(ctx), proposal.Plan{Proposals: []proposal.Proposal{p}})
	records[0].Background = background
	if err == nil {
		s.confineToBounds(&records[0])
		if records[0].Decision.Effect == proposal.Ask {
			records[0].ClientApproval = a
		}
	}
	s.probing.countReasons(&records[0])
	s.records = append(s.records, records...)
	s.known[p.ID] = true
	s.report.Records = append(s.report.Records, s.redactRecords(s.records[i:])...)
	if err != nil {
		return err
	}
	return s.recordDecisions(i)
}

// confineToBounds limits a decision to the session's bounds.
func (s *Session) confineToBounds(r *proposal.Record) {
	g := r.Decision.Grant
	if g == nil {
		return
	}
	lowerGrant(g, s.bounds.Limits)
	if len(g.Network) > 0 && (r.Background || s.isBusy()) {
		r.Decision = points.DenyReason("session.background",
			"a command with a network cannot run while commands run in the background, or as one of them: they share the network",
			"end the commands in the background first")
		return
	}
	if r.Proposal.Origin == proposal.OriginSetup && s.written && slices.ContainsFunc(g.Network, s.isOnlyOfSetup) {
		r.Decision = points.DenyReason("session.setup",
			"set-up has no registry after a command or a file that may have changed what it does",
			"open another session, and run set-up before anything that writes")
		return
	}
	for _, entry := range g.Network {
		setup := r.Proposal.Origin == proposal.OriginSetup && slices.Contains(s.bounds.SetupNetwork, entry)
		if !setup && !slices.Contains(s.bounds.Network, entry) {
			r.Decision = points.DenyReason("session.network",
				fmt.Sprintf("the session was not opened for the network entry %q", entry),
				"open a session that names it, or propose the command without it")
			return
		}
	}
}

// isOnlyOfSetup reports whether no command but those of set-up may be granted a network entry.
func (s *Session) isOnlyOfSetup(entry string) bool {
	return slices.Contains(s.bounds.SetupNetwork, entry) && !slices.Contains(s.bounds.Network, entry)
}

// runOne runs the allowed record i.
func (s *Session) runOne(ctx context.Context, i int) error {
	s.changing++
	r := s.records[i]
	s.written = s.written || r.Proposal.Origin == "" && FindSetupNeed(r.Proposal, r.Analysis).Waits
	if err := s.ensureSandbox(ctx); err != nil {
		markNotRun(s.records[i:], err)
		return err
	}
	return s.runProposal(ctx, i)
}

// ensureSandbox creates the sandbox if it does not exist yet.
func (s *Session) ensureSandbox(ctx context.Context) error {
	if s.runner != nil {
		return nil
	}
	network := slices.Concat(s.bounds.Network, s.bounds.SetupNetwork)
	slices.Sort(network)
	return s.openSandbox(context.WithoutCancel(ctx), s.bounds.Limits, slices.Compact(network))
}

// Close ends the session: its sandbox, its network and its log. The error says why the
// session stopped early, if it did.
func (s *Session) Close(why error) (proposal.Report, error) {
	if s.stopped == nil {
		s.stopped = why
	}
	by := proposal.KilledClosed
	if why != nil {
		by = sandbox.KilledBy(why)
	}
	for _, r := range s.background {
		r.Kill(by)
	}
	report, err := s.endRun(context.Background(), s.stopped)
	if s.stopped == nil {
		s.stopped = &proposal.StopError{Code: "session.closed", Message: "the session was closed",
			Hint: "open another session"}
	}
	return report, err
}

// maxListed is how many events and changed files a session's report lists, so that memory is
// bounded. The log has all of them.
const maxListed = 50_000

// shortenResult returns what the report has of r.
func (s *Session) shortenResult(r *proposal.Result) *proposal.Result {
	r = withoutStreams(r)
	if r == nil {
		return nil
	}
	s.listed += len(r.Changes.Files)
	if o := r.Observations; o != nil {
		s.listed += len(o.Programs) + len(o.Execs) + len(o.Notable) + len(o.Network)
	}
	if s.listed > maxListed {
		r.Changes = proposal.Changes{Files: []proposal.Change{}, Omitted: r.Changes.Omitted + len(r.Changes.Files)}
		r.Observations = withoutLists(r.Observations)
	}
	return r
}

// withoutLists returns o without what was counted.
func withoutLists(o *proposal.Observations) *proposal.Observations {
	if o == nil {
		return nil
	}
	return &proposal.Observations{Programs: []proposal.Program{}, Execs: []proposal.Event{},
		Notable: []proposal.Event{}, Network: []proposal.Reach{},
		Counts: o.Counts, Findings: o.Findings, Complete: o.Complete}
}

// withoutStreams returns r without the bytes that a command printed.
func withoutStreams(r *proposal.Result) *proposal.Result {
	if r == nil {
		return nil
	}
	short := *r
	short.Stdout.Head, short.Stdout.Tail, short.Stderr.Head, short.Stderr.Tail = nil, nil, nil, nil
	short.TestResults.Head, short.TestResults.Tail = nil, nil
	short.Displays = proposal.Digests(short.Displays)
	if short.Retried != nil {
		first := *short.Retried
		first.Stdout.Head, first.Stdout.Tail, first.Stderr.Head, first.Stderr.Tail = nil, nil, nil, nil
		short.Retried = &first
	}
	return &short
}
