// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// quoteForeign returns parts in which every untrusted message is one quoted piece, so
// that prose shows it as code. Otherwise the plain words of a message would look like
// fumehood's.
func quoteForeign(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i, part := range parts {
		if part.Foreign {
			parts[i].Report = quoteReport(part.Report, part.Decided)
		}
	}
	return parts
}

func quoteCode(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}

func quoteList(list []string) []string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quoteCode(s)
	}
	return quoted
}

func quoteReport(r proposal.Report, decided bool) proposal.Report {
	r.Run.Enforced, r.Run.Unenforced, r.Run.Left = quoteList(r.Run.Enforced), quoteList(r.Run.Unenforced),
		quoteList(r.Run.Left)
	if r.Error != nil {
		e := *r.Error
		e.Message, e.Hint = quoteCode(e.Message), quoteCode(firstParagraph(e.Hint))
		r.Error = &e
	}
	r.Records = slices.Clone(r.Records)
	for i := range r.Records {
		quoteRecord(&r.Records[i], decided)
	}
	return r
}

func quoteRecord(r *proposal.Record, decided bool) {
	if !decided {
		r.Decision.Reasons = slices.Clone(r.Decision.Reasons)
		for i := range r.Decision.Reasons {
			reason := &r.Decision.Reasons[i]
			reason.Message, reason.Suggestion = quoteCode(reason.Message), quoteCode(reason.Suggestion)
			reason.Alternatives, reason.Retry = nil, "" // fumehood has not allowed them
			reason.Severity, reason.Category = "", ""   // nor classified it
			reason.Revision = ""
		}
		r.Analysis.Unknowns = slices.Clone(r.Analysis.Unknowns)
		for i := range r.Analysis.Unknowns {
			u := &r.Analysis.Unknowns[i]
			u.Message, u.Hint = quoteCode(u.Message), quoteCode(u.Hint)
		}
	}
	r.Redacted = quoteRedactions(r.Redacted)
	if r.Base != nil {
		b := *r.Base
		b.Why = quoteCode(b.Why)
		r.Base = &b
	}
	if r.Result == nil {
		return
	}
	result := *r.Result
	result.Detail = quoteDetail(result.Detail)
	result.Stdout.Redacted, result.Stderr.Redacted = quoteRedactions(result.Stdout.Redacted),
		quoteRedactions(result.Stderr.Redacted)
	result.TestResults.Redacted = quoteRedactions(result.TestResults.Redacted)
	result.Outputs = quoteOutputs(result.Outputs)
	result.Observations = quoteObservations(result.Observations)
	if result.Retried != nil {
		first := *result.Retried
		first.Outputs = quoteOutputs(first.Outputs)
		first.Observations = quoteObservations(first.Observations)
		result.Retried = &first
	}
	r.Result = &result
}

func quoteOutputs(list []proposal.Output) []proposal.Output {
	list = slices.Clone(list)
	for i := range list {
		list[i].Refused = quoteCode(list[i].Refused)
		list[i].Redacted = quoteRedactions(list[i].Redacted)
	}
	return list
}

func quoteObservations(o *proposal.Observations) *proposal.Observations {
	if o == nil {
		return nil
	}
	quoted := *o
	quoted.Execs = slices.Clone(o.Execs)
	for i, e := range quoted.Execs {
		if e.Decision == nil || e.Decision.Reason == nil {
			continue
		}
		d, reason := *e.Decision, *e.Decision.Reason
		reason.Message, reason.Suggestion = quoteCode(reason.Message), quoteCode(reason.Suggestion)
		d.Reason = &reason
		quoted.Execs[i].Decision = &d
	}
	quoted.Network = quoteNetwork(o.Network)
	quoted.Findings = slices.Clone(o.Findings)
	for i := range quoted.Findings {
		quoted.Findings[i].Message = quoteCode(quoted.Findings[i].Message)
	}
	return &quoted
}

// interrupted is the sandbox's detail for a command that ended because its run was
// interrupted.
const interrupted = "the run was interrupted"

// quoteDetail does not quote the one detail that changes how a result is interpreted.
func quoteDetail(s string) string {
	if s == interrupted {
		return s
	}
	return quoteCode(s)
}

func quoteRedactions(list []proposal.Redaction) []proposal.Redaction {
	list = slices.Clone(list)
	for i := range list {
		if list[i].Rule != forged {
			list[i].Rule = quoteCode(list[i].Rule)
		}
	}
	return list
}
