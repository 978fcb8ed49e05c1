// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

// The files of an artifact that we read again; whatever else is in it is for people.
const (
	planName   = "plan"
	reportName = "report.json"
	auditName  = "audit.jsonl"

	maxReport = 64 << 20
)

// A leg is one plan of a job's and what became of it.
type leg struct {
	name     string
	document []byte
	plan     proposal.Plan
	report   proposal.Report
	dir      string // with what is reported, when this job made it
	files    string // with whole outputs and what was brought out, which nobody reads again
	own      bool   // ran in this job: nobody else had a hand in it
	ours     bool   // the report is our word on what was left, not what was left
	audit    string // what verifying the log said
	doubt    []string
	sure     bool // the decisions are those that our own policy gives
	artifact artifactRef
	log      []byte // what was in the artifact, kept for a collector only
}

// An artifactRef is where a leg's files can be had later.
type artifactRef struct {
	run, id int64
	name    string
	dir     string // of several plans' the one's, or ""
}

// part is what the page has of l. foreign says that the workflow that ran it is one
// that the pull request can change.
func (l leg) part(foreign bool) report.Part {
	return report.Part{Name: l.name, Report: l.report, Audit: l.audit, Doubt: l.doubt, Foreign: foreign && !l.own, Decided: l.own || l.sure}
}

// stoppedReport is what there is to say when a run did not come to a report.
func (j *job) stoppedReport(err error) proposal.Report {
	return proposal.Report{
		Schema: proposal.ReportSchema, Records: []proposal.Record{}, Error: j.failure(err),
		Run: proposal.Run{Repository: j.runner.Repository, PR: j.request.PR, HeadSHA: j.request.Head, BaseSHA: j.request.Base,
			Version: fumehoodVersion(), Mode: j.in.Mode, Enforced: []string{}, Unenforced: []string{}, Start: time.Now().UTC()},
	}
}

func stoppedLeg(j *job, err error) leg {
	return leg{name: j.in.Name, report: j.stoppedReport(err), own: true, ours: true}
}

// save leaves the report of a run that left none, so that whoever reports later has
// something to tell.
func (l leg) save() error {
	data, err := report.JSON(l.report)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(l.dir, 0o700), os.WriteFile(filepath.Join(l.dir, reportName), data, 0o600))
}

// trustOf is what a report says of its log: that both are of one piece is all that
// it can show.
func trustOf(r proposal.Report) audit.Trust {
	if r.Audit == nil {
		return audit.Trust{}
	}
	return audit.Trust{Key: r.Audit.Key, Checkpoint: r.Audit.Checkpoint}
}

func verdictOf(s audit.Summary, err error) string {
	if err != nil {
		return err.Error()
	}
	return s.String()
}
