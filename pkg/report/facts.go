// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/pkg/internal/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A fault is an error in a report, and its location.
type fault struct{ path, message string }

var (
	digestGrammar     = pattern.New(`^sha256:[0-9a-f]{64}$`)
	hexGrammar        = pattern.New(`^[0-9a-f]{64}$`)
	idGrammar         = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	runGrammar        = pattern.New(`^[A-Za-z0-9._-]{1,128}$`)
	loginGrammar      = pattern.New(`^[A-Za-z0-9._-]{1,100}(?:\[bot\])?$`)
	repositoryGrammar = pattern.New(`^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$`)
	forkGrammar       = pattern.New(repositoryGrammar.String() + `|^a repository that is gone$`)
	signalGrammar     = pattern.New(`^SIG[A-Z]{2,8}$`)
	codeGrammar       = pattern.New(`^[a-z][a-z0-9.-]{0,79}$`)
)

// A prober records the first fault.
type prober struct {
	first *fault
	bare  bool // the output of commands is withheld
}

func (p *prober) hold(ok bool, path, format string, args ...any) {
	if !ok && p.first == nil {
		p.first = &fault{path, fmt.Sprintf(format, args...)}
	}
}

// match checks a text against a grammar. An empty text is accepted if it is optional.
func (p *prober) match(grammar *pattern.Pattern, s, path string, optional bool) {
	p.hold(optional && s == "" || grammar.MatchString(s), path, "is not written as such a value is")
}

func (p *prober) oneOf(s, path string, words ...string) {
	p.hold(slices.Contains(words, s), path, "is none of the words it may be")
}

// count checks that counts are in range.
func (p *prober) count(path string, numbers ...int64) {
	for _, n := range numbers {
		p.hold(n >= 0 && n <= 1<<50, path, "holds a number that counts nothing")
	}
}

// checkFacts checks a report for properties that every report of fumehood has.
func checkFacts(r proposal.Report) *fault {
	p := &prober{bare: r.Withheld != nil}
	p.hold(r.Schema == proposal.ReportSchema, "schema", "is not %q", proposal.ReportSchema)
	p.run(r.Run, r.Error != nil)
	ids := map[string]bool{}
	for i, rec := range r.Records {
		path := fmt.Sprintf("records[%d]", i)
		p.hold(!ids[rec.Proposal.ID], path+".proposal.id", "is given twice")
		ids[rec.Proposal.ID] = true
		p.record(rec, path, r)
		if p.first != nil {
			return p.first // one fault is enough, and a record may be large
		}
	}
	p.causes(r.Records)
	p.hold(r.Totals == proposal.Total(r.Records), "totals", "does not count the records")
	if r.Audit != nil {
		p.count("audit.entries", r.Audit.Entries)
	}
	if r.Error != nil {
		p.match(codeGrammar, r.Error.Code, "error.code", false)
	}
	return p.first
}

// run checks the conditions of a run. A run that stopped may lack some of them.
func (p *prober) run(r proposal.Run, stopped bool) {
	p.match(runGrammar, r.ID, "run.id", stopped)
	p.match(digestGrammar, r.PlanDigest, "run.plan_digest", stopped)
	p.match(digestGrammar, r.Policy, "run.policy_digest", stopped)
	p.policies(r.Policies)
	p.match(fullSHA, r.HeadSHA, "run.head_sha", true)
	p.match(fullSHA, r.BaseSHA, "run.base_sha", true)
	p.match(repositoryGrammar, r.Repository, "run.repository", true)
	p.match(forkGrammar, r.Fork, "run.fork", true)
	p.oneOf(r.Mode, "run.mode", "", "enforce", "observe")
	p.count("run.pr", int64(r.PR))
	p.count("run.wall_ms", r.WallMS)
	if r.Approval != nil {
		p.approval(*r.Approval, "run.approval")
	}
}

func (p *prober) approval(a proposal.Approval, path string) {
	p.match(loginGrammar, a.By, path+".by", false)
	p.hold(a.ByID > 0, path+".by_id", "is nobody's")
	p.match(fullSHA, a.HeadSHA, path+".head_sha", false)
	p.match(digestGrammar, a.PlanDigest, path+".plan_digest", false)
	p.match(digestGrammar, a.Policy, path+".policy_digest", false)
}

func (p *prober) record(r proposal.Record, path string, report proposal.Report) {
	p.proposal(r.Proposal, path+".proposal")
	p.analysis(r.Analysis, path+".analysis")
	p.decision(r, path+".decision")
	p.redactions(r.Redacted, path+".redacted")
	p.hold(r.Entry >= -1, path+".entry", "is no entry's number")
	if r.Approval != nil {
		p.approval(*r.Approval, path+".approval")
		p.hold(r.Approval.Covers(report.Run), path+".approval", "speaks of another commit, plan or policy")
		p.hold(report.Run.Approval != nil && report.Run.Approval.Equal(*r.Approval), path+".approval", "is not the run's")
	}
	if r.Result == nil {
		p.hold(!r.Runnable() || report.Error != nil, path+".result", "is missing, though the command was allowed")
		return
	}
	p.hold(r.Runnable(), path+".result", "stands beside a decision by which nothing runs")
	p.result(*r.Result, path+".result")
	if o := r.Result.Observations; o != nil {
		p.hold(r.Result.Status != proposal.NotRun, path+".result.observations", "are of a command that did not run")
		p.observations(*o, r.Proposal.ID, path+".result.observations")
	}
	if r.Result.Usage != nil {
		p.usage(*r.Result.Usage, path+".result.usage")
	}
	if r.Result.Retried != nil {
		p.hold(r.Result.Status != proposal.NotRun, path+".result.retried", "stands beside a second run that there was not")
		p.retried(*r.Result.Retried, r.Proposal.ID, path+".result.retried")
	}
}

func (p *prober) proposal(r proposal.Proposal, path string) {
	p.match(idGrammar, r.ID, path+".id", false)
	forms := 0
	for _, given := range []bool{r.Run != "", len(r.Argv) > 0, r.Code != ""} {
		if given {
			forms++
		}
	}
	p.hold(forms == 1, path, "has not one of run, argv and code")
	if r.Code != "" {
		p.oneOf(r.Language, path+".language", "python", "javascript", "bash", "sh")
	}
}

func (p *prober) analysis(a proposal.Analysis, path string) {
	for i, c := range a.Commands {
		at := fmt.Sprintf("%s.commands[%d]", path, i)
		p.hold(c.Index == i, at+".index", "is not its place")
		p.oneOf(c.StdinFrom, at+".stdin_from", "", "pipe", "file", "heredoc", "herestring")
		for j, redirect := range c.Redirects {
			p.oneOf(redirect.Kind, fmt.Sprintf("%s.redirects[%d].kind", at, j), "read", "write", "readwrite", "dup", "heredoc", "herestring", "process")
		}
	}
	for i, s := range a.Snippets {
		at := fmt.Sprintf("%s.snippets[%d]", path, i)
		p.oneOf(s.Language, at+".language", "python", "javascript", "typescript")
		p.oneOf(s.Via, at+".via", "code", "-c", "-e", "heredoc", "herestring")
		p.hold(s.Command >= 0 && s.Command < len(a.Commands), at+".command", "is no command's index")
		p.count(at+".size", int64(s.Size))
	}
}

// decision checks that the effect follows from the reasons that took effect.
func (p *prober) decision(r proposal.Record, path string) {
	d := r.Decision
	strongest := proposal.Allow
	for i, reason := range d.Reasons {
		at := fmt.Sprintf("%s.reasons[%d]", path, i)
		p.hold(reason.Command >= -1 && reason.Command < max(1, len(r.Analysis.Commands)), at+".command", "is no command's index")
		p.typed(reason, at)
		if !reason.Observed {
			strongest = min(strongest, reason.Effect)
		}
	}
	p.hold(d.Effect <= strongest, path+".effect", "is weaker than its reasons")
	p.hold(d.Effect == proposal.Deny || len(r.Analysis.Unknowns) == 0, path+".effect", "lets run what could not be analysed")
	p.hold(r.Approval == nil || d.Effect == proposal.Ask, path+".effect", "needs no approval, and has one")
}

// typed checks the parts of a reason that are addressed to the proposer.
func (p *prober) typed(r proposal.Reason, path string) {
	p.hold(r.Retry == "" || slices.Contains(proposal.Retries, r.Retry), path+".retry", "is none of the words it may be")
	p.hold(len(r.Layer) <= 64, path+".layer", "is no layer's name")
	if s := r.Span; s != nil {
		p.hold(s.Start >= 0 && s.End >= s.Start && s.Line >= 1 && s.Col >= 1, path+".span", "is no place in a text")
	}
	p.hold(len(r.Alternatives) <= proposal.MaxAlternatives, path+".alternatives", "has too many items")
	for _, text := range r.Alternatives {
		p.hold(len(text) <= proposal.MaxAlternative, path+".alternatives", "holds a command that is too long")
	}
}

func (p *prober) result(r proposal.Result, path string) {
	p.hold(r.ExitCode >= -1 && r.ExitCode <= 255, path+".exit_code", "is no exit code")
	p.hold(len(r.Signal) <= 32, path+".signal", "is no signal's name")
	p.count(path, r.WallMS, r.CPUMS, int64(r.PeakMem), int64(r.Leftover), int64(r.Changes.Omitted))
	ran := r.Status != proposal.NotRun && r.Status != proposal.SandboxFailed
	p.stream(r.Stdout, path+".stdout", ran)
	p.stream(r.Stderr, path+".stderr", ran)
	for i, o := range r.Outputs {
		at := fmt.Sprintf("%s.outputs[%d]", path, i)
		p.count(at+".bytes", o.Bytes)
		p.match(hexGrammar, o.SHA256, at+".sha256", true)
		p.redactions(o.Redacted, at+".redacted")
	}
	for i, c := range r.Changes.Files {
		at := fmt.Sprintf("%s.changes.files[%d]", path, i)
		p.count(at+".bytes", c.Bytes)
		p.oneOf(c.Kind, at+".kind", "added", "changed", "removed")
		p.oneOf(c.Type, at+".type", "file", "dir", "symlink", "other")
	}
}

// stream checks the counts and, if all bytes are present, their digest.
func (p *prober) stream(s proposal.Stream, path string, ran bool) {
	kept := int64(len(s.Head) + len(s.Tail))
	partly := len(s.Redacted) > 0 && s.FileBytes < s.Bytes
	p.match(hexGrammar, s.SHA256, path+".sha256", !ran || s.Withheld != "" || partly)
	p.redactions(s.Redacted, path+".redacted")
	p.hold(s.Withheld == "" || kept == 0 && s.SHA256 == "" && s.File == "", path+".withheld", "stands beside what is here all the same")
	p.count(path, s.Bytes, s.FileBytes)
	p.hold(s.FileBytes <= s.Bytes, path+".file_bytes", "is more than the stream had")
	if p.bare {
		p.hold(s.Bytes >= kept, path+".bytes", "does not count what is kept")
		return
	}
	p.hold(s.Bytes >= kept && s.Truncated == (s.Bytes > kept), path+".bytes", "does not count what is kept")
	if !s.Truncated && s.SHA256 != "" {
		sum := sha256.New()
		sum.Write(s.Head)
		sum.Write(s.Tail)
		p.hold(hex.EncodeToString(sum.Sum(nil)) == s.SHA256, path+".sha256", "is another text's")
	}
}

var redactionGrammar = pattern.New(`^(mask:[A-Za-z_][A-Za-z0-9_]{0,199}|[a-z0-9][a-z0-9._-]{0,99})$`)

func (p *prober) redactions(list []proposal.Redaction, path string) {
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		p.match(redactionGrammar, r.Rule, at+".rule", false)
		p.hold(r.Count > 0, at+".count", "counts nothing")
		p.count(at+".count", int64(r.Count))
	}
}
