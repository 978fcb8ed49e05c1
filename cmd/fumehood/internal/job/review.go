// SPDX-License-Identifier: Apache-2.0

package job

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/internal/evidence/report"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A reviewer reads the artifacts of one workflow run and compares them with what is known
// from elsewhere: the event, the API, and this repository's own policy.
type reviewer struct {
	job     *Job
	base    *Base
	engine  *policy.Engine // base's
	request Request        // that the run must be about
	fork    string
	run     int64 // the workflow run's id
	labels  map[string]string
	local   bool // its workflow is one that no pull request can change
}

// read downloads an artifact and reviews each plan in it. An error refuses all of them.
func (r reviewer) read(ctx context.Context, a github.Artifact) ([]PlanRun, error) {
	runs, err := r.download(ctx, a)
	for i := range runs {
		if err == nil {
			err = r.review(ctx, &runs[i])
		}
	}
	return runs, err
}

// download reads the three files of each plan in an artifact.
func (r reviewer) download(ctx context.Context, a github.Artifact) ([]PlanRun, error) {
	bundles, err := r.job.unpack(ctx, a)
	if err != nil {
		return nil, err
	}
	var runs []PlanRun
	for _, dir := range slices.SortedFunc(maps.Keys(bundles), byNumber) {
		l, files := r.newPlanRun(a, dir), bundles[dir]
		if l.Report, err = report.Read(files[reportName], MaxReport); err != nil {
			return nil, err
		}
		l.document = files[planName]
		if err := l.checkLog(files[auditName]); err != nil {
			return nil, err
		}
		if r.job.collector.Endpoint != "" {
			l.log = files[auditName]
		}
		runs = append(runs, l)
	}
	return runs, nil
}

// unpack downloads an artifact and returns the files of each plan in it, by the plan's directory.
func (j *Job) unpack(ctx context.Context, a github.Artifact) (map[string]map[string][]byte, error) {
	data, err := j.gh.DownloadArtifact(ctx, a.ID, maxZip)
	switch {
	case github.KindOf(err) == github.TooLarge:
		return nil, malformed("it is larger than %d bytes", maxZip)
	case err != nil:
		return nil, err
	}
	return unzip(data)
}

// newPlanRun names what is in an artifact: at its top or, of several plans, in dir.
func (r reviewer) newPlanRun(a github.Artifact, dir string) PlanRun {
	l := PlanRun{Name: r.labels[a.Name], local: r.local,
		artifact: artifactRef{run: r.run, id: a.ID, name: a.Name, dir: dir}}
	if i, err := strconv.Atoi(dir); err == nil && i < len(r.request.Plans) {
		l.Name = r.request.Plans[i].Name
	} else if err == nil {
		l.Name = strings.TrimPrefix(l.Name+"-"+dir, "-")
	}
	return l
}

// checkLog verifies the log and compares it with the report.
func (l *PlanRun) checkLog(log []byte) error {
	if l.Report.Audit == nil && len(log) == 0 && (l.Report.Error != nil || len(l.Report.Records) == 0) {
		return nil // it stopped before there was one, or nothing was proposed
	}
	var entries []journal.Entry
	summary, err := audit.Scan(bytes.NewReader(log), trustOf(l.Report), func(e audit.Entry) error {
		entries = append(entries, journal.Entry{Kind: e.Kind, Body: slices.Clone(e.Body)})
		return nil
	})
	if err != nil {
		return malformed("its audit log does not verify: %v", err)
	}
	l.audit = summary.String()
	if summary.State == audit.Sealed {
		l.seal, l.digest = summary.Checkpoint, fmt.Sprintf("%x", sha256.Sum256(log))
	}
	if doubts := order.CompareLog(l.Report, entries); len(doubts) > 0 {
		return malformed("the report does not match the audit log: %s", doubts[0])
	}
	return nil
}

func (r reviewer) review(ctx context.Context, l *PlanRun) error {
	if err := r.checkSubject(*l); err != nil {
		return err
	}
	run := l.Report.Run
	nothingRan := len(l.Report.Records) == 0 && (l.Report.Error != nil || l.Report.Audit == nil)
	if len(l.document) == 0 && nothingRan {
		return nil // stopped before there was a plan, or nothing was proposed
	}
	p, problems := plan.Decode(l.document, planName)
	if held := heldSecrets(l.Report); held && (len(problems) > 0 || p.Digest != run.PlanDigest) {
		l.doubts = append(l.doubts, "the plan had secrets, which were redacted: it could not be decided again")
		return nil
	}
	switch {
	case len(problems) > 0 && nothingRan:
		return nil // its error says the same
	case len(problems) > 0:
		return malformed("invalid plan: %s", plan.Describe(planName, problems[0]))
	case p.Digest != run.PlanDigest:
		return malformed("its plan does not match the report")
	}
	l.plan = p
	return r.redecide(ctx, l)
}

// checkSubject refuses a report on other code, or with an approval that no person gave.
func (r reviewer) checkSubject(l PlanRun) error {
	run := l.Report.Run
	switch {
	case run.HeadSHA != r.request.Head || run.PR != r.request.PR ||
		!strings.EqualFold(run.Repository, r.job.runner.Repository):
		return malformed("its commit, pull request or repository does not match the run")
	case run.Fork != r.fork && (run.Fork != "" || len(l.Report.Records) > 0):
		return malformed("its source repository does not match GitHub's data")
	case run.Session:
		return malformed("it is the report of a session")
	case run.Approval != nil && !l.local && !r.request.approves(*run.Approval):
		return malformed("it has an approval that no person gave")
	}
	return nil
}

// redecide decides the plan by this repository's policy. A difference is a doubt and not
// an error: another version of fumehood may have decided.
func (r reviewer) redecide(ctx context.Context, l *PlanRun) error {
	run := &l.Report.Run
	if run.Policy != r.engine.Digest() && len(l.Report.Records) > 0 {
		l.doubts = append(l.doubts, fmt.Sprintf("it was decided with a policy other than this repository's (%s)",
			describeTips(r.base.tips)))
	}
	if run.Policy == r.engine.Digest() { // the same files, so from where we had them
		var err error
		if run.Policies, err = r.base.origins(ctx); err != nil {
			return err
		}
	}
	engine, err := r.engineOf(*l)
	if err != nil {
		return err
	}
	checker := order.Checker{Policy: engine, Adviser: explain.NewAdviser(engine, order.AnalyzeProposal)}
	decided, err := r.decided(ctx, *l)
	if err != nil {
		return err
	}
	doubts, barred, err := checker.RedecidePlan(ctx, decided, l.Report)
	if err != nil {
		return err
	}
	if l.barred = barred; barred > 0 {
		l.doubts = append(l.doubts, fmt.Sprintf("this repository's policy would not have run %d of these commands; run the workflow again", barred))
	}
	if l.Report.Error == nil || len(l.Report.Records) > 0 {
		l.doubts = append(l.doubts, doubts...)
	}
	l.confirmed = len(l.doubts) == 0
	return nil
}

// engineOf returns what decides l again. A run of a workflow that no pull request can change is
// decided by what it was about then, and another by what this job knows: its report can be forged.
func (r reviewer) engineOf(l PlanRun) (*policy.Engine, error) {
	if about := l.Report.Run.Context; r.local && about != nil {
		return r.engine.WithContext(*about)
	}
	return r.engine, nil
}

// decided returns the plan as the run must have decided it: with the configuration of this
// repository.
func (r reviewer) decided(ctx context.Context, l PlanRun) (proposal.Plan, error) {
	o := planning.Planner{Directory: l.Report.Run.Cwd}
	if len(l.Report.Records) == 0 { // it stopped, perhaps because of its configuration
		planned, _ := o.Plan(l.plan)
		return planned, nil
	}
	c, err := r.base.configuration(ctx)
	if err != nil {
		return proposal.Plan{}, err
	}
	o.Limits = c.config.Limits
	o.Setup, err = c.reportedSetup(l.Report)
	planned, _ := o.Plan(l.plan)
	return planned, err
}

// The limits of an artifact, which a job of an untrusted workflow may have written.
const (
	maxZip      = 64 << 20
	maxZipFiles = 10_000
	maxLog      = 128 << 20 // an exec takes about 1 KiB
)

func malformed(format string, args ...any) error {
	return &proposal.StopError{Code: "report.malformed", Message: "invalid artifact: " + fmt.Sprintf(format, args...),
		Hint: "run the workflow again; the artifact is from a run that the pull request can change, so none of it is shown"}
}

// numbered is the directory of one of several plans.
var numbered = pattern.New(`^(0|[1-9][0-9]?)$`)

func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// unzip reads the files of each plan out of an archive into memory, by the plan's
// directory; no path in it is used. All plans together may have what one may.
func unzip(data []byte) (map[string]map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, malformed("it is not a zip archive")
	}
	if len(z.File) > maxZipFiles {
		return nil, malformed("it has more than %d files", maxZipFiles)
	}
	limits := map[string]int64{planName: plan.MaxDocument, reportName: MaxReport, auditName: maxLog,
		documentName: review.MaxDocument}
	bundles, room := map[string]map[string][]byte{}, int64(MaxReport+maxLog+plan.MaxDocument)
	for _, f := range z.File {
		dir, name := path.Split(f.Name)
		dir = strings.TrimSuffix(dir, "/")
		limit, ours := limits[name]
		if !ours || dir != "" && !numbered.MatchString(dir) || f.Name != path.Join(dir, name) {
			continue
		}
		if bundles[dir] == nil {
			bundles[dir] = map[string][]byte{}
		}
		if _, twice := bundles[dir][name]; twice || !f.Mode().IsRegular() {
			return nil, malformed("%s is a duplicate or not a regular file", name)
		}
		if bundles[dir][name], err = inflate(f, min(limit, room)); err != nil {
			return nil, err
		}
		room -= int64(len(bundles[dir][name]))
	}
	if len(bundles) == 0 || len(bundles) > maxPlans {
		return nil, malformed("it has the reports of %d plans", len(bundles))
	}
	return bundles, nil
}

func inflate(f *zip.File, limit int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, malformed("%s cannot be read", f.Name)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil || int64(len(data)) > limit {
		return nil, malformed("%s is damaged or larger than %d bytes", f.Name, limit)
	}
	return data, nil
}
