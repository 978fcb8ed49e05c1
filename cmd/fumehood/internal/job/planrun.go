// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The files of an artifact that are read again; everything else in it is for people.
const (
	planName   = "plan"
	reportName = "report.json"
	auditName  = "audit.jsonl"
)

// Other forms of the report in the artifact.
const (
	pageName  = "report.html"
	sarifName = "report.sarif"
	junitName = "junit.xml"
)

// MaxReport is the size of the largest report that is read, in bytes.
const MaxReport = 64 << 20

// A PlanRun is one plan of a request and its result.
type PlanRun struct {
	Name   string // of the plan where a request has several, or ""
	Report proposal.Report

	document []byte
	plan     proposal.Plan
	dir      string // with what is reported, when this job made it
	files    string // with whole outputs and what was brought out, which is not read again

	local      bool // it ran in a job that the pull request cannot change
	substitute bool // this job wrote Report in place of what was left
	confirmed  bool // this repository's policy gives the same decisions
	doubts     []string
	barred     int    // commands that ran, and that this repository's policy would not have run
	audit      string // the result of verifying the log
	seal       string // of a log that was in an artifact, which is sealed; or ""
	digest     string // the SHA-256 of that log, in hexadecimal
	cosigned   *report.Cosigned

	artifact artifactRef
	log      []byte // the artifact's, for a collector only
}

// An artifactRef says where a run's files are kept.
type artifactRef struct {
	run, id int64
	name    string
	dir     string // of one of several plans, or ""
}

// decidedHere reports whether the decisions of l are this repository's.
func (l PlanRun) decidedHere() bool { return l.local || l.confirmed }

// part is the part of the page about l. foreign means that the pull request can change
// the workflow that ran it.
func (l PlanRun) part(foreign bool) report.Part {
	return report.Part{Name: l.Name, Report: l.Report, Audit: l.audit, Cosigned: l.cosigned, Doubt: l.doubts,
		Foreign: foreign && !l.local, Decided: l.decidedHere()}
}

// sumUp returns what runs amount to. What policy would now refuse counts as denied: a rule
// that was merged since a run is never overlooked.
func sumUp(runs []PlanRun) action.Outcome {
	o := action.OutcomeOf(reports(runs)...)
	for _, l := range runs {
		o.Totals.Denied += l.barred
	}
	return o
}

func reports(runs []PlanRun) []proposal.Report {
	var list []proposal.Report
	for _, l := range runs {
		list = append(list, l.Report)
	}
	return list
}

// stoppedReport is the report of a run that has none.
func (j *Job) stoppedReport(q Request, err error) proposal.Report {
	return proposal.Report{
		Schema: proposal.ReportSchema, Records: []proposal.Record{}, Error: j.failure(err),
		Run: proposal.Run{Repository: j.runner.Repository, PR: q.PR, HeadSHA: q.Head, BaseSHA: q.Base,
			Version: j.options.Version, Mode: j.in.Mode, Enforced: []string{}, Unenforced: []string{},
			Start: time.Now().UTC()},
	}
}

func (j *Job) stoppedRun(q Request, err error) PlanRun {
	return PlanRun{Name: j.in.Name, Report: j.stoppedReport(q, err), local: true, substitute: true}
}

// artifactDir is the directory that the upload step takes.
func (j *Job) artifactDir() string { return filepath.Join(j.dir, "artifact") }

// save writes the report of a run that has none, so that a later job can show it.
func (l PlanRun) save() error {
	data, err := report.JSON(l.Report)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(l.dir, 0o700), os.WriteFile(filepath.Join(l.dir, reportName), data, 0o600))
}

// keepPlan leaves the plan in the artifact, redacted. A plan that held a secret is then
// not the plan that was decided, and the report says so.
func (l PlanRun) keepPlan(u *redact.Redactor) error {
	return os.WriteFile(filepath.Join(l.dir, planName), []byte(u.Text(string(l.document))), 0o600)
}

// heldSecrets reports whether the plan of r is kept redacted.
func heldSecrets(r proposal.Report) bool {
	for _, rec := range r.Records {
		if len(rec.Redacted) > 0 {
			return true
		}
	}
	return false
}

// openLog opens the log that l's job wrote, or that was in the artifact.
func (l PlanRun) openLog() (log io.ReadSeeker, end func(), err error) {
	if l.log != nil {
		return bytes.NewReader(l.log), func() {}, nil
	}
	if l.dir == "" || l.Report.Audit == nil {
		return nil, nil, os.ErrNotExist
	}
	f, err := os.Open(filepath.Join(l.dir, auditName))
	return f, func() { f.Close() }, err
}

// trustOf is what a report says about its log. It shows only that both belong together.
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

// filesOf names the artifact with the files that commands left. It is another one than
// the reported artifact, which can be read however much they left.
func filesOf(name string) string { return "files-of-" + name }

// artifacts names what the runs have left, each once.
func (j *Job) artifacts(runs []PlanRun) []string {
	var names []string
	for _, l := range runs {
		name := l.artifact.name
		if l.dir != "" {
			name = j.artifactName()
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if j.in.Artifact != "" && leftFiles(runs) {
		names = append(names, filesOf(j.artifactName()))
	}
	return names
}

// leftFiles reports whether commands of this job left any file.
func leftFiles(runs []PlanRun) bool {
	for _, l := range runs {
		if entries, err := os.ReadDir(l.files); err == nil && len(entries) > 0 {
			return true
		}
	}
	return false
}

// uploadOutputs make the action upload the artifact directory under a name that is attempted's.
func (j *Job) uploadOutputs(name string) [][2]string {
	return [][2]string{{"artifact-path", j.artifactDir()}, {"artifact-name", name},
		{"upload", strconv.FormatBool(j.in.UploadsArtifacts(j.runner))},
		{"retention-days", strconv.Itoa(j.in.RetentionDays)}}
}

// artifactOutputs are the outputs of a job that ran plans.
func (j *Job) artifactOutputs(runs []PlanRun) [][2]string {
	if len(runs) == 0 || runs[0].dir == "" {
		return nil
	}
	values := [][2]string{{"report", filepath.Join(runs[0].dir, reportName)},
		{"audit-log", filepath.Join(runs[0].dir, auditName)}}
	for _, v := range [][2]string{{"html", filepath.Join(runs[0].dir, pageName)},
		{"sarif", filepath.Join(runs[0].dir, sarifName)}, {"junit", filepath.Join(runs[0].dir, junitName)}} {
		if isThere(v[1]) {
			values = append(values, v)
		}
	}
	if j.in.Artifact == "" {
		return values
	}
	values = append(values, j.uploadOutputs(j.artifactName())...)
	if leftFiles(runs) {
		values = append(values, [2]string{"files-path", filepath.Join(j.dir, "files")},
			[2]string{"files-name", filesOf(j.artifactName())})
	}
	return values
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
