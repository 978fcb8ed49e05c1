// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/review/model"
	"github.com/fumehood/fumehood/internal/review/spend"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of a Reviewer's fields.
const (
	MaxRounds        = 20
	DefaultRounds    = 3
	DefaultMaxOutput = 16_000 // tokens of an answer
	DefaultTimeout   = 30 * time.Minute
)

// wholeShare is the part of each limit, one in so many, that whole files can take: they are sent
// with every request.
const wholeShare = 4

// A Reviewer is a model that is asked about a change, with everything that is fixed before the
// first request. No text of the pull request, a command or the model changes any of it.
type Reviewer struct {
	Provider  model.Provider
	Name      string // of the provider
	Model     string
	Rounds    int           // requests that are answered, at most MaxRounds
	MaxOutput int64         // tokens of an answer
	Timeout   time.Duration // of the review; the conversation ends after two thirds of it
	Budget    *spend.Budget
	Prices    string // digest of the table of prices; "" if the model's price is not known
	Redactor  *redact.Redactor
	Signer    *audit.Signer // of the log; nil for a new key
	// Dir is a directory for the log, which is made, and Owner receives the log at once, so that it
	// is not lost if the process is killed. If Dir is empty, it is one of the user's state.
	Dir   string
	Owner *process.Owner
	// Guidance reads the maintainers' guidance in the tree of the base.
	Guidance func(trusted string) (Guidance, error)

	wait time.Duration // before the second attempt of a request; a second if 0
}

// ReviewChange asks r about l, and verifies what it finds. The Document says what came of it, also if
// there is an error; one without Schema means that nothing was asked.
func (l Local) ReviewChange(ctx context.Context, r Reviewer) (d Document, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return l.withTrees(ctx, func(c *commits, diff *Diff) (Document, error) {
		guidance, err := r.Guidance(c.treePath(SideBase))
		if err != nil {
			return Document{}, err
		}
		return (&modelReview{Reviewer: r, commits: c, diff: diff, guidance: guidance}).runReview(ctx)
	})
}

// A modelReview is one review by a model.
type modelReview struct {
	Reviewer
	commits  *commits
	diff     *Diff
	guidance Guidance
	id, dir  string
	log      *audit.Log
	talk     *conversation
	doc      Document
}

func (m *modelReview) runReview(ctx context.Context) (d Document, err error) {
	if err := m.createLog(); err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, m.log.Close()) }()
	ended := m.askWithSession(ctx)
	m.doc = newDocument(m.diff, proposal.ReviewFindings{})
	var partly *incomplete
	if ended == nil || errors.As(ended, &partly) {
		var reported proposal.ReviewFindings
		reported, m.talk.use.Left = m.guidance.reportedFindings(m.talk.found)
		m.doc, err = Verify(ctx, m.commits, m.diff, reported)
	} else {
		err = ended
	}
	m.concludeReview(ended)
	return m.doc, errors.Join(err, m.sealLog(err))
}

// createLog creates the log. Its first entry has all that is fixed.
func (m *modelReview) createLog() error {
	err := m.makeDir()
	if err != nil {
		return err
	}
	file := filepath.Join(m.dir, logName)
	if m.log, err = audit.Create(file, audit.Options{Origin: "fumehood/" + m.id, Signer: m.Signer}); err != nil {
		return err
	}
	if err := m.Owner.TakePaths(file); err != nil {
		return errors.Join(err, m.log.Close())
	}
	fixed := m.firstEntry(m.id, system, m.guidance)
	fixed.Base, fixed.Head, fixed.Policy = m.commits.base, m.commits.head, m.commits.gates[SideHead].PolicyDigest()
	_, err = m.log.Append("review", fixed)
	return err
}

// logName is the name of the log of requests in its directory.
const logName = "audit.jsonl"

// makeDir names the review, and makes the directory of its log.
func (m *modelReview) makeDir() error {
	m.id = newID()
	mode := os.FileMode(0o755) // for Owner, in a directory that only Owner can enter
	if m.dir = m.Dir; m.dir == "" {
		state, err := process.StateHome()
		if err != nil {
			return err
		}
		m.dir, mode = filepath.Join(state, "fumehood", m.id), 0o700
	}
	if err := os.MkdirAll(m.dir, mode); err != nil {
		return &proposal.StopError{Code: "artifacts.not-writable", Message: "cannot make the review's directory",
			Hint: "check the directory for artifacts, or that of your state", Err: err}
	}
	return nil
}

func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return "review-" + time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// firstEntry returns a log's first entry, without the commits and the policy.
func (r Reviewer) firstEntry(id, system string, g Guidance) fixedEntry {
	return fixedEntry{ID: id, Network: []string{}, Provider: r.Name, Model: r.Model, Rounds: r.Rounds,
		MaxOutput: r.MaxOutput, TimeoutMS: r.Timeout.Milliseconds(),
		Limits: r.Budget.Limits(), Subject: r.Budget.Subject(), Prices: r.Prices, Guidance: g,
		System: digestOf([]byte(system)), Schema: digestOf(answerSchema), Events: []string{}}
}

// newConversation returns a conversation that has not begun, without its setting.
func (r Reviewer) newConversation(system string, log entries, keep func(name, text string) error) *conversation {
	return &conversation{provider: r.Provider, reviewer: r.Name + "/" + r.Model, budget: r.Budget, redactor: r.Redactor,
		log: log, keep: keep, wait: cmp.Or(r.wait, time.Second),
		request: model.Request{Model: r.Model, System: system, Schema: answerSchema, MaxOutput: r.MaxOutput}}
}

// A fixedEntry is the first entry of a review's log: all that no later text can change.
type fixedEntry struct {
	ID        string       `json:"id"`
	Base      string       `json:"base"`
	Head      string       `json:"head"`
	Policy    string       `json:"policy"`
	Network   []string     `json:"network"` // of the commands: none
	Events    []string     `json:"writes"`  // what the review may write outside of this machine: nothing
	Provider  string       `json:"provider"`
	Model     string       `json:"model"`
	Rounds    int          `json:"rounds"`
	MaxOutput int64        `json:"max_output_tokens"`
	TimeoutMS int64        `json:"timeout_ms"`
	Limits    spend.Limits `json:"limits"`
	Subject   string       `json:"subject"` // digest of what limits.subject applies to
	Prices    string       `json:"prices,omitempty"`
	Guidance  Guidance     `json:"guidance"`
	System    string       `json:"system"`
	Schema    string       `json:"schema"`
}

// askWithSession has the conversation, with a session on head for its commands.
func (m *modelReview) askWithSession(ctx context.Context) (err error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, m.Timeout*2/3)
	defer cancel()
	m.talk = m.newConversation(system, m.log, m.keepText)
	g := m.commits.gates[SideHead]
	session, err := g.Open(whole, gate.SessionOptions{Proposer: m.talk.reviewer, Idle: m.Timeout, Lifetime: m.Timeout})
	if err != nil {
		return err
	}
	m.talk.setting = promptContext{rounds: m.Rounds, guidance: m.guidance, tools: g.Toolchains(), diff: m.commits.diff,
		head: readWithin(m.commits.treePath(SideHead)),
		room: int(min(maxWholeFiles, m.Budget.InputShare(wholeShare)/int64(m.Rounds)))}
	return m.converse(ctx, session)
}

// A commandSession is what a conversation needs of a gate.Session.
type commandSession interface {
	SetUp(ctx context.Context, before proposal.Proposal, each func(proposal.Record)) error
	Do(ctx context.Context, p proposal.Proposal) (proposal.Record, error)
	Close() (proposal.Report, error)
}

// converse has the conversation with the commands of a session, and closes the session. An error
// of the conversation is returned, except when closing fails too.
func (m *modelReview) converse(ctx context.Context, session commandSession) error {
	m.talk.do = session.Do
	err := session.SetUp(ctx, proposal.Proposal{}, // all of it, which is in the prompt
		func(r proposal.Record) { m.talk.setting.setup = append(m.talk.setting.setup, r) })
	if err == nil {
		err = m.talk.askRounds(ctx)
	}
	report, closed := session.Close()
	if report.Audit != nil {
		run := runOf(SideHead, report)
		m.talk.use.Session = &run
	}
	if closed != nil {
		return closed
	}
	return err
}

// concludeReview says whether this was a review: only if the model ended it, and a command really ran.
func (m *modelReview) concludeReview(ended error) {
	d, use := &m.doc, &m.talk.use
	use.Provider, use.Model, use.Spent, use.Priced = m.Name, m.Model, m.Budget.SpentAmount(), m.Prices != ""
	d.Model, d.Base, d.Head = use, m.commits.base, m.commits.head
	switch {
	case ended != nil:
		d.Reviewed, d.Reason = false, m.Redactor.Text(proposal.FailureOf(ended).Message)
		d.Partial = len(d.Results) > 0
	case d.Reviewed && use.Ran == 0 && len(d.Results) == 0:
		d.Reviewed, d.Reason = false, "no command of the model ran"
	}
}

// sealLog writes the last entry and seals the log.
func (m *modelReview) sealLog(failure error) error {
	verdicts := map[string]Verdict{}
	for _, r := range m.doc.Results {
		verdicts[r.Finding.ID] = r.Verdict
	}
	_, err := m.log.Append("end", endEntry{Reviewed: m.doc.Reviewed, Reason: m.doc.Reason, Findings: m.doc.Findings,
		Verdicts: verdicts, Runs: m.doc.Runs, Session: m.talk.use.Session, Spent: m.Budget.SpentAmount(),
		Error: proposal.FailureOf(m.Redactor.Error(failure))})
	if err != nil {
		return err
	}
	checkpoint, err := m.log.Seal()
	m.talk.use.Log = Run{ID: m.id, Side: "model", Log: m.log.Path(), Key: m.log.Key(), Checkpoint: checkpoint}
	return err
}

// An endEntry is the last entry of a review's log.
type endEntry struct {
	Reviewed bool               `json:"reviewed"`
	Reason   string             `json:"reason,omitempty"`
	Findings string             `json:"findings_digest"`
	Verdicts map[string]Verdict `json:"verdicts"`
	Runs     []Run              `json:"runs"`
	Session  *Run               `json:"session,omitempty"`
	Spent    spend.Amount       `json:"spent"`
	Error    *proposal.Failure  `json:"error"`
}

// keepText writes a text beside the log, if the maintainers allow it.
func (m *modelReview) keepText(name, text string) error {
	return m.guidance.newTextKeeper(m.dir)(name, text)
}
