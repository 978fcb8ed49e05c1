// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fumehood/fumehood/pkg/action"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/checkout"
	"github.com/fumehood/fumehood/pkg/egress/registry"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/github"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/report"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// A source is what was fetched of the base repository.
type source struct {
	store  *checkout.Store
	policy string   // folder with the base commit's rules, or ""
	read   bool     // policy is known
	files  []string // that the pull request changes; nil while not known
	partly bool     // files is not all of them

	workspace string   // with the head commit
	left      []string // what of it is not there
	doubts    []string // what of it an earlier step may have changed
}

// DefaultPolicy is the folder that is looked for when no input names one.
const defaultPolicy = ".github/fumehood"

// open fetches commits of the repository that the pull request is made to.
func (j *job) open(shas ...string) error {
	if j.source == nil {
		store, err := checkout.Open(checkout.Source{
			URL: j.runner.ServerURL + "/" + j.runner.Repository, Token: j.in.Token, Dir: filepath.Join(j.dir, "store"), Server: j.runner.ServerURL,
			Proxy: os.Getenv("https_proxy"), NoProxy: os.Getenv("no_proxy"),
		}, checkout.Limits{})
		if err != nil {
			return err
		}
		j.source = &source{store: store}
	}
	return j.source.store.Fetch(j.Ctx, shas...)
}

// readPolicy writes the base commit's rules to a folder: never the pull request's.
func (j *job) readPolicy() error {
	if j.source.read {
		return nil
	}
	folder, named := j.policyFolder(), j.in.Policy != ""
	dir := filepath.Join(j.dir, "policy")
	tree, err := j.source.store.WriteUnder(j.Ctx, j.request.Base, folder, dir)
	var absent *checkout.NotFound
	switch {
	case errors.As(err, &absent) && !named:
		j.source.read = true
		return nil
	case errors.As(err, &absent):
		return &proposal.StopError{Code: "policy.missing", Message: fmt.Sprintf("the base commit has no folder %q", folder),
			Hint: "is the input policy spelt as the folder is? If the pull request adds it, merge that to the base branch first: policy is never read from the pull request"}
	case proposal.FailureOf(err) != nil && proposal.FailureOf(err).Code == "checkout.tree":
		return &proposal.StopError{Code: "policy.missing", Message: fmt.Sprintf("%q is not a folder in the base commit", folder), Hint: "name the folder that holds the .rego files, not one of them"}
	case err != nil:
		return err
	case len(tree.Left) > 0:
		return &proposal.StopError{Code: "policy.incomplete", Message: "part of the policy folder cannot be used: " + tree.Describe()[0],
			Hint: "keep only plain files and folders in it"}
	}
	j.source.policy, j.source.read = dir, true
	return nil
}

// prepare brings the commit, the policy and the plans to this machine.
func (j *job) prepare() error {
	if err := j.headStands(); err != nil {
		return err
	}
	j.console.Group("fumehood: commit " + j.request.Head[:12])
	defer j.console.EndGroup()
	if err := j.open(j.request.Head, j.request.Base); err != nil {
		return err
	}
	if err := j.readPolicy(); err != nil {
		return err
	}
	if _, err := j.layers(); err != nil { // told before anything is made for the run
		return err
	}
	if len(j.request.Plans) == 0 {
		p, err := j.readInputPlan()
		if err != nil {
			return err
		}
		j.request.Plans = []planned{p}
	}
	return j.writeWorkspace()
}

// writeWorkspace brings the pull request's code: written by us, with a repository of
// our own making, or as an earlier step checked it out.
func (j *job) writeWorkspace() error {
	var err error
	if j.in.Checkout == "" {
		err = j.writeCommit()
	} else {
		err = j.takeCheckout()
	}
	if err != nil {
		return err
	}
	if err := j.folderStands(); err != nil {
		return err
	}
	changes, err := j.source.store.Changed(j.Ctx, j.request.Base, j.request.Head)
	if err != nil {
		return err
	}
	j.source.files = []string{}
	for _, c := range changes {
		j.source.files = append(j.source.files, c.Path)
	}
	j.console.Progress("the pull request changes %d files", len(changes))
	for _, line := range append(j.source.left, j.source.doubts...) {
		j.console.Untrusted(line)
	}
	return nil
}

func (j *job) writeCommit() error {
	s := j.source
	s.workspace = filepath.Join(j.dir, "workspace")
	tree, err := s.store.Write(j.Ctx, j.request.Head, s.workspace)
	if err != nil {
		return err
	}
	s.left = tree.Describe()
	return s.store.Repository(j.Ctx, s.workspace, j.request.Head, j.request.Base)
}

// takeCheckout uses what actions/checkout wrote, when it is at the commit, or at the
// merge that GitHub made of it, and holds no credential. What earlier steps changed in
// it is told in the report.
func (j *job) takeCheckout() error {
	s := j.source
	s.workspace = filepath.Join(j.runner.Workspace, j.in.Checkout)
	want := []string{j.request.Head}
	if j.event.Name == "pull_request" && j.runner.SHA != j.request.Head {
		want = append(want, j.runner.SHA)
	}
	found, err := checkout.Inspect(j.Ctx, s.workspace, want, os.Getenv)
	if err != nil {
		return err
	}
	s.doubts = found.Describe()
	if found.HEAD != j.request.Head {
		s.doubts = append(s.doubts, "the commit alone: an earlier step checked out the merge of it with the base branch")
	}
	return nil
}

// runAll runs each plan in a sandbox of its own.
func (j *job) runAll() error {
	var errs error
	for i, p := range j.request.Plans {
		if j.Ctx.Err() != nil {
			break
		}
		l, err := j.runOne(i, p)
		j.legs = append(j.legs, l)
		j.printLeg(l)
		errs = errors.Join(errs, err)
	}
	if j.phase == action.Run {
		errs = errors.Join(errs, j.writeSummary(report.Page{}))
	}
	return errs
}

// runOne runs one plan as root in a process without our token, and reads what it left.
func (j *job) runOne(i int, p planned) (leg, error) {
	l := leg{name: p.Name, own: true, document: []byte(p.Document), dir: filepath.Join(j.dir, "artifact", strconv.Itoa(i)),
		files: filepath.Join(j.dir, "files", strconv.Itoa(i))}
	if len(j.request.Plans) == 1 {
		l.dir = filepath.Join(j.dir, "artifact")
	}
	var problems []proposal.Problem
	if l.plan, problems = plan.Decode(l.document, p.File); len(problems) > 0 {
		err := invalidPlan(l.document, p.File, problems)
		l.report = j.stoppedReport(err)
		return l, errors.Join(err, l.save())
	}
	l.report = j.stoppedReport(&proposal.StopError{Code: "run.lost", Message: "the run left no report"})
	args, err := j.childArgs(l, p)
	if err != nil {
		return l, err
	}
	j.console.Group(fmt.Sprintf("fumehood: running %d proposals%s", len(l.plan.Proposals), named(p.Name)))
	told, err := j.handMasks()
	if err != nil {
		return l, err
	}
	code, err := child{args: args, told: told, line: func(s string) { j.console.Untrusted(j.plain(s)) }}.run(j.Ctx)
	j.console.EndGroup()
	if err != nil {
		l.report = j.stoppedReport(err)
		return l, errors.Join(err, l.save())
	}
	return j.readBack(l, code)
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// childArgs writes the plan and what it is about to files, and names them.
func (j *job) childArgs(l leg, p planned) ([]string, error) {
	if err := errors.Join(os.MkdirAll(l.dir, 0o700), os.MkdirAll(filepath.Dir(l.files), 0o700)); err != nil {
		return nil, err
	}
	planFile, aboutFile := filepath.Join(j.dir, "plan"), filepath.Join(j.dir, "about.json")
	a := gate.About{Repository: j.runner.Repository, PR: j.request.PR, HeadSHA: j.request.Head, BaseSHA: j.request.Base,
		Left: j.source.left, Unenforced: j.source.doubts, Ceiling: j.in.Limits, Approval: p.Approval, Fork: j.fork(), Cwd: j.folder()}
	policies, origins, err := j.policyArgs()
	if err != nil {
		return nil, err
	}
	a.Policies = origins
	data, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(l.keepPlan(j.outlet), os.WriteFile(planFile, l.document, 0o600), os.WriteFile(aboutFile, data, 0o600)); err != nil {
		return nil, err
	}
	args := []string{
		"--plan", planFile, "--about", aboutFile, "--workspace", j.source.workspace, "--rootfs", j.in.Rootfs, "--tools", os.Getenv("PATH"),
		"--artifacts", l.files, "--audit", filepath.Join(l.dir, auditName), "--report", filepath.Join(l.dir, reportName),
		"--owner", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--timeout", j.in.Timeout.String(), "--json", "--mask-stdin",
	}
	args = append(args, policies...)
	if j.in.Network == action.NetworkPolicy && len(policies) > 0 {
		registries, err := j.registries(l)
		if err != nil {
			return nil, err
		}
		args = append(args, "--registries", registries)
	}
	if j.in.Mode == action.ModeObserve {
		args = append(args, "--observe")
	}
	return args, nil
}

// registries writes where this job's own tools find the packages that the plan asks for:
// the child has another HOME, and root's.
func (j *job) registries(l leg) (string, error) {
	var asked []string
	for _, p := range l.plan.Proposals {
		asked = append(asked, registry.Named(p.Network)...)
	}
	found, err := registry.Discover(j.Ctx, asked)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(found)
	if err != nil {
		return "", err
	}
	path := filepath.Join(j.dir, "registries.json")
	return path, os.WriteFile(path, data, 0o600)
}

// folder is where commands start, "" for the repository's top.
func (j *job) folder() string {
	if j.in.WorkingDirectory == "." {
		return ""
	}
	return j.in.WorkingDirectory
}

// folderStands makes sure that the folder in which commands start is there: otherwise
// each would fail on its own, as if it were the pull request's fault.
func (j *job) folderStands() error {
	root, err := os.OpenRoot(j.source.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Stat(j.in.WorkingDirectory); err != nil || !info.IsDir() {
		return &proposal.StopError{Code: "input.working-directory", Message: fmt.Sprintf("the commit has no folder %q", j.in.WorkingDirectory),
			Hint: "the input working-directory is relative to the top of the repository"}
	}
	return nil
}

// fork names the repository that the code comes from, when it is another one.
func (j *job) fork() string {
	if j.event.PR == nil || !j.event.PR.Fork {
		return ""
	}
	if j.event.PR.Head.Repository == "" {
		return "a repository that is gone"
	}
	return j.event.PR.Head.Repository
}

// readBack reads the report and the log that a child left, and verifies the log.
func (j *job) readBack(l leg, code int) (leg, error) {
	data, err := os.ReadFile(filepath.Join(l.dir, reportName))
	if err != nil {
		return l, errors.Join(&proposal.StopError{Code: "run.lost", Message: fmt.Sprintf("the run ended with code %d and left no report", code), Err: err}, l.save())
	}
	if l.report, err = report.Read(data, maxReport); err != nil {
		l.report = j.stoppedReport(err)
		return l, err
	}
	if f, err := os.Open(filepath.Join(l.dir, auditName)); err == nil {
		l.audit = verdictOf(audit.Verify(f, trustOf(l.report)))
		f.Close()
	}
	l.report = j.outlet.Report(l.report)
	if e := l.report.Error; e != nil {
		e.Message, e.Hint = j.plain(e.Message), j.plain(e.Hint)
		return l, &proposal.StopError{Code: e.Code, Message: e.Message, Hint: e.Hint}
	}
	return l, nil
}

// printLeg shows in the job's log what each command printed, folded.
func (j *job) printLeg(l leg) {
	for _, r := range l.report.Records {
		if r.Result == nil {
			continue
		}
		j.console.Group(fmt.Sprintf("%s: %s", terminal.Line(r.Proposal.ID), r.Result.Outcome()))
		j.console.Untrusted(strings.TrimRight("$ "+r.Analysis.Canonical, "\n"))
		for _, s := range []proposal.Stream{r.Result.Stdout, r.Result.Stderr} {
			if s.Bytes > 0 {
				j.console.Untrusted(excerpt(s))
			}
		}
		j.console.EndGroup()
	}
	j.console.Paragraph(report.Text(l.report))
}

func excerpt(s proposal.Stream) string {
	if !s.Truncated {
		return string(s.Head) + string(s.Tail)
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", s.Head, s.Bytes-int64(len(s.Head)+len(s.Tail)), s.Tail)
}

// baseStands refuses an approval that is used again, by a job that is started again,
// after the base and its policy have moved on.
func (j *job) baseStands(pr github.PullRequest) error {
	approved := slices.ContainsFunc(j.request.Plans, func(p planned) bool { return p.Approval != nil })
	if !approved || pr.Base.SHA == j.request.Base {
		return nil
	}
	return &proposal.StopError{Code: "approval.void", Message: fmt.Sprintf("the base, whose policy it is, has moved on from %.12s to %.12s since the approval", j.request.Base, pr.Base.SHA),
		Hint: "approve again"}
}

// headStands makes sure that what was asked for is still what the pull request is.
func (j *job) headStands() error {
	if j.request.PR == 0 {
		return nil
	}
	pr, err := j.hub.PullRequest(j.Ctx, j.request.PR)
	if err != nil {
		return err
	}
	j.pr = pr
	if pr.Head.SHA == j.request.Head {
		return j.baseStands(pr)
	}
	if j.event.Name == "pull_request" {
		j.skipped = fmt.Sprintf("the pull request has moved on to %.12s, whose own run reports", pr.Head.SHA)
		return nil
	}
	return &proposal.StopError{Code: "head.moved", Message: fmt.Sprintf("the pull request has moved on from %.12s to %.12s", j.request.Head, pr.Head.SHA),
		Hint: "look at the new commit, and ask again"}
}
