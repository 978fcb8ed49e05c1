// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
)

// What an artifact may have: it is written by a job that ran a stranger's workflow.
const (
	maxArtifacts = maxPlans
	maxZip       = 64 << 20
	maxZipFiles  = 10_000
	maxLog       = 128 << 20 // an exec takes about 1 KiB
)

// gather reads what the jobs that ran have left. Nothing in it names a path, a pull
// request or a commit that we believe.
func (j *job) gather() error {
	artifacts, err := j.artifactsOf(j.stamp().RunID)
	if err != nil && refused(err) {
		j.legs = append(j.legs, leg{report: j.stoppedReport(err), ours: true})
		return nil
	}
	if err != nil {
		return err
	}
	if len(artifacts) == 0 {
		j.legs = append(j.legs, j.nothingReported())
		return nil
	}
	if err := j.open(j.request.Base); err != nil {
		return err
	}
	if err := j.readPolicy(); err != nil {
		return err
	}
	engine, err := j.engine()
	if err != nil {
		return err
	}
	for _, a := range artifacts {
		legs, err := j.fetchLegs(a)
		for i := range legs {
			if err == nil {
				err = j.review(engine, j.request.Head, &legs[i])
				legs[i].report = j.outlet.Report(legs[i].report)
			}
		}
		if err == nil && len(j.legs)+len(legs) > maxPlans {
			err = tooMany(len(j.legs)+len(legs), "plans")
		}
		if err != nil && !refused(err) {
			return err
		}
		if err != nil {
			l := j.legOf(a, "")
			l.report, l.ours = j.stoppedReport(err), true
			legs = []leg{l}
		}
		j.legs = append(j.legs, legs...)
	}
	return nil
}

// refused reports whether err is about what was reported, which is then told, and not
// about our own work.
func refused(err error) bool { return strings.HasPrefix(proposal.FailureOf(err).Code, "report.") }

// engine is the organisation's policy, and the one that this repository has at the base
// commit.
func (j *job) engine() (*policy.Engine, error) {
	o := policy.Options{Observe: j.in.Mode == "observe"}
	layers, err := j.layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		o.Layers = append(o.Layers, l.layer)
	}
	return newEngine(j.Ctx, o)
}

// artifactsOf lists the artifacts of a run: ours by name, one of each name, the newest.
func (j *job) artifactsOf(run int64) ([]github.Artifact, error) {
	all, err := j.hub.Artifacts(j.Ctx, run)
	if err != nil {
		return nil, err
	}
	newest := map[string]github.Artifact{}
	for _, a := range all {
		ours := j.in.Artifact != "" && (a.Name == j.in.Artifact || strings.HasPrefix(a.Name, j.in.Artifact+"-"))
		if old, there := newest[a.Name]; ours && !a.Expired && (!there || a.ID > old.ID) {
			newest[a.Name] = a
		}
	}
	var list []github.Artifact
	for _, a := range newest {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b github.Artifact) int { return strings.Compare(a.Name, b.Name) })
	if len(list) > maxArtifacts {
		return nil, tooMany(len(list), "artifacts")
	}
	return list, nil
}

func tooMany(n int, what string) error {
	return &proposal.StopError{Code: "report.too-many", Message: fmt.Sprintf("the run left %d %s, %d can be reported", n, what, maxPlans),
		Hint: "use fewer plans, or several in one"}
}

// nothingReported says why there is no report: most often the run was cancelled, or
// failed before fumehood's step.
func (j *job) nothingReported() leg {
	err := &proposal.StopError{Code: "report.missing", Message: "the run left no report", Hint: "look at the run's log: a step before fumehood's may have failed, or its input artifact may be empty or another name than here"}
	if j.event.Run == nil {
		err.Hint = "phase report tells what earlier jobs of the same run have left: give this job needs: and them phase: run. Where there is one job, leave phase out"
	}
	if j.event.Run != nil && j.event.Run.Conclusion == "cancelled" {
		err = &proposal.StopError{Code: "run.cancelled", Message: "the run was cancelled before it was done"}
	}
	return leg{report: j.stoppedReport(err), own: true}
}

// fetchLegs downloads one artifact and reads the three files of each plan in it.
func (j *job) fetchLegs(a github.Artifact) ([]leg, error) {
	data, err := j.hub.Download(j.Ctx, a.ID, maxZip)
	if github.KindOf(err) == github.TooLarge {
		return nil, malformed("it is larger than %d bytes", maxZip)
	}
	if err != nil {
		return nil, err
	}
	bundles, err := unzip(data)
	if err != nil {
		return nil, err
	}
	var legs []leg
	for _, dir := range slices.SortedFunc(maps.Keys(bundles), byNumber) {
		l, files := j.legOf(a, dir), bundles[dir]
		if l.report, err = report.Read(files[reportName], maxReport); err != nil {
			return nil, err
		}
		l.document = files[planName]
		if err := j.checkLog(&l, files[auditName]); err != nil {
			return nil, err
		}
		if j.telling.options.Endpoint != "" {
			l.log = files[auditName]
		}
		legs = append(legs, l)
	}
	return legs, nil
}

func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// legOf names what lies in an artifact, at its top or, of several plans, in a folder.
func (j *job) legOf(a github.Artifact, dir string) leg {
	l := leg{name: strings.TrimPrefix(strings.TrimPrefix(a.Name, j.in.Artifact), "-"), artifact: artifactRef{run: j.stamp().RunID, id: a.ID, name: a.Name, dir: dir}}
	if i, err := strconv.Atoi(dir); err == nil && i < len(j.request.Plans) {
		l.name = j.request.Plans[i].Name
	} else if err == nil {
		l.name = strings.TrimPrefix(l.name+"-"+dir, "-")
	}
	return l
}

func malformed(format string, args ...any) error {
	return &proposal.StopError{Code: "report.malformed", Message: "the artifact cannot be used: " + fmt.Sprintf(format, args...),
		Hint: "it comes from a workflow run that the pull request can change; nothing of it is shown"}
}

// numbered is a folder with one of several plans.
var numbered = regexp.MustCompile(`^(0|[1-9][0-9]?)$`)

// unzip reads our three files out of an archive, those of each plan, into memory: no
// path of it is used. All plans together may have what one may.
func unzip(data []byte) (map[string]map[string][]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, malformed("it is no zip archive")
	}
	if len(z.File) > maxZipFiles {
		return nil, malformed("it has more than %d files", maxZipFiles)
	}
	limits := map[string]int64{planName: plan.MaxDocument, reportName: maxReport, auditName: maxLog}
	bundles, room := map[string]map[string][]byte{}, int64(maxReport+maxLog+plan.MaxDocument)
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
			return nil, malformed("%s is there twice, or is no file", name)
		}
		if bundles[dir][name], err = inflate(f, min(limit, room)); err != nil {
			return nil, err
		}
		room -= int64(len(bundles[dir][name]))
	}
	if len(bundles) == 0 || len(bundles) > maxPlans {
		return nil, malformed("it holds the reports of %d plans", len(bundles))
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

// checkLog verifies the log and compares it with the report.
func (j *job) checkLog(l *leg, log []byte) error {
	if l.report.Audit == nil && len(log) == 0 && l.report.Error != nil {
		return nil // it stopped before there was one
	}
	var entries []hood.Entry
	summary, err := audit.Scan(bytes.NewReader(log), trustOf(l.report), func(e audit.Entry) error {
		entries = append(entries, hood.Entry{Kind: e.Kind, Body: slices.Clone(e.Body)})
		return nil
	})
	if err != nil {
		return malformed("its audit log does not verify: %v", err)
	}
	l.audit = summary.String()
	if doubts := hood.CompareLog(l.report, entries); len(doubts) > 0 {
		return malformed("report and audit log do not agree: %s", doubts[0])
	}
	return nil
}

// review compares a report with what is known from elsewhere: the event, the API, and
// this repository's own policy.
func (j *job) review(engine *policy.Engine, head string, l *leg) error {
	run := l.report.Run
	if run.HeadSHA != head || run.PR != j.request.PR || !strings.EqualFold(run.Repository, j.runner.Repository) {
		return malformed("it speaks of another commit, pull request or repository than the run that left it")
	}
	if run.Fork != j.fork() && (run.Fork != "" || len(l.report.Records) > 0) {
		return malformed("it says otherwise about where the code comes from than GitHub does")
	}
	if run.Approval != nil && !l.own && !j.given(*run.Approval) {
		return malformed("it speaks of an approval that nobody gave")
	}
	if len(l.document) == 0 && l.report.Error != nil && len(l.report.Records) == 0 {
		return nil // stopped before there was a plan
	}
	p, problems := plan.Decode(l.document, planName)
	if held := heldSecrets(l.report); held && (len(problems) > 0 || p.Digest != run.PlanDigest) {
		l.doubt = append(l.doubt, "the plan held secrets, which are not told: it could not be decided again")
		return nil
	}
	if len(problems) > 0 {
		if l.report.Error != nil && len(l.report.Records) == 0 {
			return nil // which is what it says
		}
		return malformed("its plan: %s", plan.Describe(planName, problems[0]))
	}
	if p.Digest != run.PlanDigest {
		return malformed("its plan is not the one that was reported on")
	}
	l.plan = p
	return j.redecide(engine, l)
}

// given reports whether a is what the bot handed on. What a pull request started has
// no approval.
func (j *job) given(a proposal.Approval) bool {
	return slices.ContainsFunc(j.request.Plans, func(p planned) bool { return p.Approval != nil && p.Approval.Equal(a) })
}

// redecide decides the plan by our own policy. What the report says otherwise is told
// as a doubt: another version of fumehood may have decided.
func (j *job) redecide(engine *policy.Engine, l *leg) error {
	if run := l.report.Run; run.Policy != engine.Digest() && len(l.report.Records) > 0 {
		l.doubt = append(l.doubt, "it was decided with another policy than this repository's")
	}
	if l.report.Run.Policy == engine.Digest() { // the same files, so from where we had them
		var err error
		if l.report.Run.Policies, err = j.origins(); err != nil {
			return err
		}
	}
	h, err := hood.New(hood.Parts{Parse: gate.Analyze, Policy: engine, Now: time.Now, Advise: policy.NewAdviser(engine, gate.Analyze).Advise})
	if err != nil {
		return err
	}
	doubts, err := h.Redecide(j.Ctx, gate.InDirectory(l.plan, l.report.Run.Cwd), l.report)
	if err != nil {
		return err
	}
	if l.report.Error == nil || len(l.report.Records) > 0 {
		l.doubt = append(l.doubt, doubts...)
	}
	l.sure = len(l.doubt) == 0
	return nil
}
