// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/kit/valid"
	"github.com/fumehood/fumehood/internal/watch/baseline"
	"github.com/fumehood/fumehood/internal/watch/hosts"
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

// A reportChecker records the first fault.
type reportChecker struct {
	first    *fault
	observed bool // nothing about the network was enforced
	onBase   bool // of what ran on the base of the pull request
	bare     bool // the output of commands is withheld, or left out as of a session
}

func (p *reportChecker) requireThat(ok bool, path, format string, args ...any) {
	if !ok && p.first == nil {
		p.first = &fault{path, fmt.Sprintf(format, args...)}
	}
}

// matchGrammar checks a text against a grammar. An empty text is accepted if it is optional.
func (p *reportChecker) matchGrammar(grammar *pattern.Pattern, s, path string, optional bool) {
	p.requireThat(optional && s == "" || grammar.MatchString(s), path, "has an invalid format")
}

func (p *reportChecker) oneOf(s, path string, words ...string) {
	p.requireThat(slices.Contains(words, s), path, "is not one of the allowed values")
}

// checkCounts checks that counts are in range.
func (p *reportChecker) checkCounts(path string, numbers ...int64) {
	for _, n := range numbers {
		p.requireThat(n >= 0 && n <= 1<<50, path, "is not a valid count")
	}
}

// checkFacts checks a report for properties that every report of fumehood has.
func checkFacts(r proposal.Report) *fault {
	p := &reportChecker{bare: r.Withheld != nil || r.Run.Session}
	p.requireThat(r.Schema == proposal.ReportSchema, "schema", "is not %q", proposal.ReportSchema)
	nothing := len(r.Records) == 0 && r.Audit == nil // was proposed
	p.checkRun(r.Run, r.Error != nil || nothing)
	ids := map[string]bool{}
	for i, rec := range r.Records {
		path := fmt.Sprintf("records[%d]", i)
		p.requireThat(!ids[rec.Proposal.ID], path+".proposal.id", "is not unique")
		ids[rec.Proposal.ID] = true
		p.checkRecord(rec, path, r)
		if p.first != nil {
			return p.first // one fault is enough, and a record may be large
		}
	}
	p.checkCauses(r.Records, r.Run.Unmet)
	p.checkBase(r)
	p.requireThat(r.Totals == proposal.Total(r.Records), "totals", "does not match the records")
	p.requireThat(r.Hosts == nil || reflect.DeepEqual(r.Hosts, hosts.ListHosts(r.Records)), "hosts",
		"does not match the records")
	if r.Differences != nil {
		p.checkDifferences(*r.Differences, r.Run.Session)
	}
	if r.Audit != nil {
		p.checkCounts("audit.entries", r.Audit.Entries)
	}
	if r.Error != nil {
		p.matchGrammar(codeGrammar, r.Error.Code, "error.code", false)
	}
	return p.first
}

// checkRun checks the conditions of a run. A run that stopped, or had nothing to run, may lack some of them.
func (p *reportChecker) checkRun(r proposal.Run, stopped bool) {
	p.observed = r.NetworkObserved
	p.matchGrammar(runGrammar, r.ID, "run.id", stopped)
	p.matchGrammar(digestGrammar, r.PlanDigest, "run.plan_digest", stopped || r.Session)
	p.matchGrammar(digestGrammar, r.Policy, "run.policy_digest", stopped)
	p.checkPolicies(r.Policies)
	p.matchGrammar(fullSHA, r.HeadSHA, "run.head_sha", true)
	p.matchGrammar(fullSHA, r.BaseSHA, "run.base_sha", true)
	p.matchGrammar(repositoryGrammar, r.Repository, "run.repository", true)
	p.matchGrammar(forkGrammar, r.Fork, "run.fork", true)
	p.oneOf(r.Mode, "run.mode", "", "enforce", "observe")
	p.checkCounts("run.pr", int64(r.PR))
	p.checkCounts("run.wall_ms", r.WallMS)
	if r.Approval != nil {
		p.checkApproval(*r.Approval, "run.approval")
	}
}

func (p *reportChecker) checkApproval(a proposal.Approval, path string) {
	p.matchGrammar(loginGrammar, a.By, path+".by", false)
	p.requireThat(a.ByID > 0, path+".by_id", "is not a user id")
	p.matchGrammar(fullSHA, a.HeadSHA, path+".head_sha", false)
	p.matchGrammar(digestGrammar, a.PlanDigest, path+".plan_digest", false)
	p.matchGrammar(digestGrammar, a.Policy, path+".policy_digest", false)
}

// clientApproval checks an approval by the client of a session. A plan's report has none.
func (p *reportChecker) clientApproval(r proposal.Record, path string, run proposal.Run) {
	a := *r.ClientApproval
	p.requireThat(run.Session && r.Approval == nil, path, "is not of a session")
	p.requireThat(a.Client != "" && len(a.Client) <= 300, path+".client", "has an invalid format")
	p.matchGrammar(digestGrammar, a.Proposal, path+".proposal_digest", false)
	p.requireThat(a.Session == run.ID && a.Policy == run.Policy && run.ID != "" && run.Policy != "", path,
		"is for another session or policy")
	p.checkCounts(path+".after", int64(a.After))
}

func (p *reportChecker) checkRecord(r proposal.Record, path string, report proposal.Report) {
	p.checkProposal(r.Proposal, path+".proposal")
	p.checkAnalysis(r.Analysis, path+".analysis")
	p.checkDecision(r, path+".decision")
	p.checkRedactions(r.Redacted, path+".redacted")
	p.requireThat(r.Entry >= -1, path+".entry", "is not an entry number")
	if r.Approval != nil {
		p.checkApproval(*r.Approval, path+".approval")
		p.requireThat(r.Approval.Covers(report.Run), path+".approval", "is for another commit, plan or policy")
		p.requireThat(report.Run.Approval != nil && report.Run.Approval.Equal(*r.Approval), path+".approval",
			"is not the run's")
	}
	if r.ClientApproval != nil {
		p.clientApproval(r, path+".client_approval", report.Run)
	}
	if r.Result == nil {
		p.requireThat(!r.Runnable() || report.Error != nil, path+".result",
			"is missing although the command was allowed")
		return
	}
	p.requireThat(r.Runnable(), path+".result", "exists although the decision does not allow a run")
	p.checkResult(*r.Result, path+".result")
	if l := r.Result.Layer; l != nil {
		p.requireThat(r.Proposal.Origin != "", path+".result.layer", "is of a command that is not set-up")
		p.requireThat(l.Kept == (l.Run == report.Run.ID), path+".result.layer.kept", "does not match the run")
	}
	if o := r.Result.Observations; o != nil {
		p.requireThat(r.Result.Status != proposal.NotRun, path+".result.observations",
			"exist although the command did not run")
		p.checkObservations(*o, r.Proposal.ID, path+".result.observations")
	}
	p.matchGrammar(hexGrammar, r.Result.CacheKey, path+".result.cache_key", r.Result.Cached == nil)
	if r.Result.Cached != nil {
		p.checkCached(*r.Result, path+".result")
	}
	if r.Result.Usage != nil {
		p.checkUsage(*r.Result.Usage, path+".result.usage")
	}
	if r.Result.Retried != nil {
		p.requireThat(r.Result.Status != proposal.NotRun, path+".result.retried",
			"exists although there was no second run")
		p.checkRetried(*r.Result.Retried, r.Proposal.ID, path+".result.retried")
	}
}

// maxProof is the maximum size of the proof of a kept result, in bytes.
const maxProof = 1 << 20

// checkCached checks a result that an earlier run had: it succeeded, and nothing was seen of it.
func (p *reportChecker) checkCached(r proposal.Result, path string) {
	p.requireThat(r.Succeeded() && r.Observations == nil && r.Usage == nil && r.Retried == nil, path+".cached",
		"is of a result that is not kept")
	p.matchGrammar(runGrammar, r.Cached.Run, path+".cached.run", false)
	p.checkCounts(path+".cached.entry", r.Cached.Entry)
	p.requireThat(len(r.Cached.Log) <= 200 && len(r.Cached.Key) <= 1000 && r.Cached.Proof != "" &&
		len(r.Cached.Proof) <= maxProof, path+".cached", "is not the origin of a result")
}

func (p *reportChecker) checkProposal(r proposal.Proposal, path string) {
	id := r.ID
	if p.onBase {
		id, _ = baseline.CommandID(id)
	}
	p.matchGrammar(idGrammar, id, path+".id", false)
	if r.Invalid != nil {
		p.checkInvalid(r, path)
		return
	}
	forms := 0
	for _, given := range []bool{r.Run != "", len(r.Argv) > 0, r.Code != ""} {
		if given {
			forms++
		}
	}
	p.requireThat(forms == 1, path, "does not have exactly one of run, argv and code")
	if r.Code != "" {
		p.oneOf(r.Language, path+".language", "python", "javascript", "bash", "sh")
	}
}

// checkInvalid checks a proposal that the plan's reader refused: it has nothing that could run.
func (p *reportChecker) checkInvalid(r proposal.Proposal, path string) {
	p.requireThat(r.Run == "" && len(r.Argv) == 0 && r.Code == "", path, "is invalid and has a command")
	n := len(r.Invalid.Problems)
	p.requireThat(n > 0 && n <= valid.MaxInvalid, path+".invalid.problems", "is not the problems of a proposal")
	for i, problem := range r.Invalid.Problems {
		p.requireThat(problem.Line > 0 && problem.Col > 0, fmt.Sprintf("%s.invalid.problems[%d]", path, i),
			"is not a position in a plan")
	}
}

func (p *reportChecker) checkAnalysis(a proposal.Analysis, path string) {
	for i, c := range a.Commands {
		at := fmt.Sprintf("%s.commands[%d]", path, i)
		p.requireThat(c.Index == i, at+".index", "does not match its position")
		p.oneOf(c.StdinFrom, at+".stdin_from", "", "pipe", "file", "heredoc", "herestring")
		for j, redirect := range c.Redirects {
			p.oneOf(redirect.Kind, fmt.Sprintf("%s.redirects[%d].kind", at, j), "read", "write", "readwrite", "dup",
				"heredoc", "herestring", "process")
		}
	}
	for i, s := range a.Snippets {
		at := fmt.Sprintf("%s.snippets[%d]", path, i)
		p.oneOf(s.Language, at+".language", "python", "javascript", "typescript")
		p.oneOf(s.Via, at+".via", "code", "-c", "-e", "heredoc", "herestring")
		p.requireThat(s.Command >= 0 && s.Command < len(a.Commands), at+".command", "is not the index of a command")
		p.checkCounts(at+".size", int64(s.Size))
	}
}

// checkDecision checks that the effect follows from the reasons that took effect.
func (p *reportChecker) checkDecision(r proposal.Record, path string) {
	d := r.Decision
	strongest := proposal.Allow
	for i, reason := range d.Reasons {
		at := fmt.Sprintf("%s.reasons[%d]", path, i)
		p.requireThat(reason.Command >= -1 && reason.Command < max(1, len(r.Analysis.Commands)), at+".command",
			"is not the index of a command")
		p.checkTyped(reason, at)
		if !reason.Observed {
			strongest = min(strongest, reason.Effect)
		}
	}
	p.requireThat(d.Effect <= strongest, path+".effect", "is weaker than its reasons")
	p.requireThat(d.Effect == proposal.Deny || len(r.Analysis.Unknowns) == 0, path+".effect",
		"allows a command that could not be analyzed")
	p.requireThat(d.Effect == proposal.Deny || r.Proposal.Invalid == nil, path+".effect", "allows an invalid proposal")
	p.requireThat(!r.Approved() || d.Effect == proposal.Ask, path+".effect", "has an approval but needs none")
}

// The values of a Reason's Retry, and of a Result's Killed.
var (
	retries = []proposal.Retry{proposal.RetryVary, proposal.RetryNever, proposal.RetryApproval, proposal.RetryTransient}
	killers = []string{proposal.KilledInterrupted, proposal.KilledCaller, proposal.KilledIdle, proposal.KilledClosed,
		proposal.KilledBudget,
		proposal.KilledConnect, proposal.KilledRegistry, proposal.KilledSandbox, proposal.KilledRun}
)

// revision matches the revision of a rule.
var revision = pattern.New(`^sha256:[0-9a-f]{12}$`)

// checkTyped checks the parts of a reason that are addressed to the proposer.
func (p *reportChecker) checkTyped(r proposal.Reason, path string) {
	p.requireThat(r.Retry == "" || slices.Contains(retries, r.Retry), path+".retry", "is not one of the allowed values")
	p.requireThat(r.Severity == "" || slices.Contains(valid.Severities, r.Severity), path+".severity",
		"is not one of the allowed values")
	p.requireThat(r.Category == "" || valid.IsCategory(r.Category), path+".category", "is not a category")
	p.requireThat(r.Revision == "" || r.Observed && revision.MatchString(r.Revision), path+".revision",
		"is not the revision of an observed rule")
	p.requireThat(len(r.Layer) <= 64, path+".layer", "is not the name of a layer")
	if s := r.Span; s != nil {
		p.requireThat(s.Start >= 0 && s.End >= s.Start && s.Line >= 1 && s.Col >= 1, path+".span",
			"is not a position in a text")
	}
	p.requireThat(len(r.Alternatives) <= valid.MaxAlternatives, path+".alternatives", "has too many items")
	for _, text := range r.Alternatives {
		p.requireThat(len(text) <= valid.MaxAlternative, path+".alternatives", "contains a command that is too long")
	}
}

func (p *reportChecker) checkResult(r proposal.Result, path string) {
	p.requireThat(r.ExitCode >= -1 && r.ExitCode <= 255, path+".exit_code", "is not an exit code")
	p.requireThat(r.Killed == "" || slices.Contains(killers, r.Killed), path+".killed",
		"is not one of the allowed values")
	p.requireThat(len(r.Signal) <= 32, path+".signal", "is not the name of a signal")
	p.checkCounts(path, r.WallMS, r.CPUMS, int64(r.PeakMem), int64(r.Leftover), int64(r.Changes.Omitted))
	ran := r.Status != proposal.NotRun && r.Status != proposal.SandboxFailed && !r.FromLayer()
	if r.Layer != nil {
		p.checkLayer(r, path+".layer")
	}
	p.checkStream(r.Stdout, path+".stdout", ran)
	p.checkStream(r.Stderr, path+".stderr", ran)
	if r.TestResults.Bytes != 0 || len(r.TestResults.Head)+len(r.TestResults.Tail) > 0 {
		p.checkStream(r.TestResults, path+".test_results", ran)
		p.requireThat(!r.Succeeded(), path+".test_results", "are of a command that did not fail")
	}
	for i, o := range r.Outputs {
		at := fmt.Sprintf("%s.outputs[%d]", path, i)
		p.checkCounts(at+".bytes", o.Bytes)
		p.matchGrammar(hexGrammar, o.SHA256, at+".sha256", true)
		p.checkRedactions(o.Redacted, at+".redacted")
	}
	for i, c := range r.Changes.Files {
		at := fmt.Sprintf("%s.changes.files[%d]", path, i)
		p.checkCounts(at+".bytes", c.Bytes)
		p.oneOf(c.Kind, at+".kind", "added", "changed", "removed")
		p.oneOf(c.Type, at+".type", "file", "dir", "symlink", "other")
	}
}

// checkLayer checks what replaced a command, which then has done nothing, or what was made of it.
func (p *reportChecker) checkLayer(r proposal.Result, path string) {
	p.matchGrammar(digestGrammar, r.Layer.Key, path+".key", false)
	p.matchGrammar(digestGrammar, r.Layer.Digest, path+".digest", false)
	p.matchGrammar(runGrammar, r.Layer.Run, path+".run", false)
	p.requireThat(r.Succeeded(), path, "is of a command that did not succeed")
	p.requireThat(!r.FromLayer() ||
		r.WallMS == 0 && r.Stdout.Bytes+r.Stderr.Bytes == 0 && len(r.Changes.Files)+len(r.Outputs) == 0 &&
			r.Observations == nil, path, "replaces a command that ran")
}

// checkDifferences checks the kinds and, unless the texts are withheld, their digest.
func (p *reportChecker) checkDifferences(d proposal.Differences, session bool) {
	p.requireThat(!session, "differences", "are in the report of a session")
	p.checkCounts("differences", int64(d.Omitted), d.Patch.Bytes)
	p.checkRedactions(d.Patch.Redacted, "differences.patch.redacted")
	sum, size := sha256.New(), 0
	for i, f := range d.Files {
		p.oneOf(f.Kind, fmt.Sprintf("differences.files[%d].kind", i), "added", "changed", "removed")
		sum.Write([]byte(f.Text))
		size += len(f.Text)
	}
	if p.bare && size == 0 || len(d.Files) == 0 && d.Patch.SHA256 == "" {
		return
	}
	p.requireThat(int64(size) == d.Patch.Bytes && hex.EncodeToString(sum.Sum(nil)) == d.Patch.SHA256,
		"differences.patch", "does not match the texts")
}

// checkStream checks the counts and, if all bytes are present, their digest.
func (p *reportChecker) checkStream(s proposal.Stream, path string, ran bool) {
	kept := int64(len(s.Head) + len(s.Tail))
	partly := len(s.Redacted) > 0 && s.FileBytes < s.Bytes
	p.matchGrammar(hexGrammar, s.SHA256, path+".sha256", !ran || s.Withheld != "" || partly)
	p.checkRedactions(s.Redacted, path+".redacted")
	p.requireThat(s.Withheld == "" || kept == 0 && s.SHA256 == "" && s.File == "", path+".withheld",
		"is set although the output is present")
	p.checkCounts(path, s.Bytes, s.FileBytes)
	p.requireThat(s.FileBytes <= s.Bytes, path+".file_bytes", "is more than the size of the stream")
	if p.bare {
		p.requireThat(s.Bytes >= kept, path+".bytes", "does not match the kept output")
		return
	}
	p.requireThat(s.Bytes >= kept && s.Truncated == (s.Bytes > kept), path+".bytes", "does not match the kept output")
	if !s.Truncated && s.SHA256 != "" {
		sum := sha256.New()
		sum.Write(s.Head)
		sum.Write(s.Tail)
		p.requireThat(hex.EncodeToString(sum.Sum(nil)) == s.SHA256, path+".sha256",
			"is not the digest of the kept output")
	}
}

var redactionGrammar = pattern.New(`^(mask:[A-Za-z_][A-Za-z0-9_]{0,199}|[a-z0-9][a-z0-9._-]{0,99})$`)

func (p *reportChecker) checkRedactions(list []proposal.Redaction, path string) {
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		p.matchGrammar(redactionGrammar, r.Rule, at+".rule", false)
		p.requireThat(r.Count > 0, at+".count", "is zero")
		p.checkCounts(at+".count", int64(r.Count))
	}
}
