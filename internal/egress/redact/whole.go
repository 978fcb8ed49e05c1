// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"slices"

	"github.com/fumehood/fumehood/internal/egress/secrets"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// DecideReport asks policy about the report and the comment made from it. If the report may
// not leave, everything that commands printed is removed from it. If the comment may
// not, Withheld says so, and the comment omits the same.
func (u *Redactor) DecideReport(ctx context.Context, r proposal.Report) (proposal.Report, error) {
	ctx = context.WithoutCancel(ctx)
	var t secrets.Tally
	var size int64
	for _, rec := range allRecords(r) {
		t.Found = redaction.SumByRule(t.Found, rec.Redacted)
		if rec.Result != nil {
			for _, s := range []proposal.Stream{rec.Result.Stdout, rec.Result.Stderr, rec.Result.TestResults} {
				t.Found, size = redaction.SumByRule(t.Found, s.Redacted), size+int64(len(s.Head)+len(s.Tail))
			}
			for _, o := range rec.Result.Outputs {
				t.Found = redaction.SumByRule(t.Found, o.Redacted)
			}
		}
	}
	if r.Differences != nil {
		t.Found, size = redaction.SumByRule(t.Found, r.Differences.Patch.Redacted), size+r.Differences.Patch.Bytes
	}
	for _, kind := range []string{points.OutgoingReport, points.OutgoingComment} {
		d, err := u.askPolicy(ctx, points.Outgoing{Kind: kind, Size: size}, t)
		if err != nil {
			r.Withheld = &proposal.Reason{Rule: proposal.FailureOf(err).Code, Effect: proposal.Deny,
				Message: "policy could not decide whether it may leave", Command: -1}
			return stripOutput(r), err
		}
		if d.Effect == proposal.Allow {
			continue
		}
		reason := proposal.Reason{Rule: "output.withheld", Effect: proposal.Deny, Message: "policy withholds it",
			Command: -1}
		if d.Reason != nil {
			reason = *d.Reason
		}
		r.Withheld = &reason
		if kind == points.OutgoingReport {
			r = stripOutput(r)
		}
	}
	return r, nil
}

// stripOutput removes everything that commands printed and wrote from r. The log binds the digests
// of the output and of the differences.
func stripOutput(r proposal.Report) proposal.Report {
	r.Records = stripRecords(r.Records)
	if r.Base != nil {
		base := *r.Base
		base.Records = stripRecords(base.Records)
		r.Base = &base
	}
	if r.Differences != nil {
		d := *r.Differences
		d.Files = slices.Clone(d.Files)
		for i := range d.Files {
			d.Files[i].Text = ""
		}
		r.Differences = &d
	}
	return r
}

// allRecords returns the records of r, also of the base.
func allRecords(r proposal.Report) []proposal.Record {
	if r.Base == nil {
		return r.Records
	}
	return slices.Concat(r.Records, r.Base.Records)
}

func stripRecords(records []proposal.Record) []proposal.Record {
	list := make([]proposal.Record, len(records))
	for i, rec := range records {
		if rec.Result != nil {
			result := *rec.Result
			clearExcerpts(&result.Stdout, &result.Stderr, &result.TestResults)
			if result.Retried != nil {
				first := *result.Retried
				clearExcerpts(&first.Stdout, &first.Stderr)
				result.Retried = &first
			}
			rec.Result = &result
		}
		rec.Base = rec.Base.Unnamed()
		list[i] = rec
	}
	return list
}

func clearExcerpts(streams ...*proposal.Stream) {
	for _, s := range streams {
		s.Head, s.Tail = nil, nil
	}
}
