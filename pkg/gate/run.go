// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/internal/watch/lineage"
	"github.com/fumehood/fumehood/internal/watch/observe"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A run is the state of one plan's run.
type run struct {
	gate     *Gate
	info     proposal.Run
	redactor *redact.Redactor
	log      *audit.Log
	network  *network
	stages   order.Stages
	budget   time.Duration // for all commands; order.DefaultBudget if 0
	files    place
	results  *keptResults   // nil if none are used
	layering *setupLayering // nil if no layers are used
	setup    setup.Setup    // the part of Options.Setup that is run
	renews   bool           // a proposal requests a new sandbox
}

// Run decides every proposal of plan, writes the decisions to a new log, runs what is
// allowed, one command after the other in one sandbox, and seals the log. If ctx ends,
// the running command is killed and the rest is not run.
//
// Denied, failed and killed commands are values in the Report. An error is a
// *proposal.StopError, or ctx's, and is in the Report's Error too: fumehood could not do
// its work, and nothing more ran. A Report without Audit has no log: nothing ran at all.
func (g *Gate) Run(ctx context.Context, plan proposal.Plan) (proposal.Report, error) {
	if err := g.checkCanRun(); err != nil {
		return g.notStarted(plan, err), err
	}
	g.running.Lock()
	defer g.running.Unlock()
	planned, part := g.planRun(ctx, plan)
	g.reportLeftOut(part)
	r := &run{gate: g, budget: commandTime(ctx), setup: part, renews: needsNewSandbox(planned)}
	defer func() {
		if err := g.early.Close(); err != nil {
			g.addWarnings("sandbox.left: cannot remove a sandbox that was not used: " + err.Error())
		}
	}()
	err := r.openRun(ctx, plan, g.planSandbox(len(planned.Proposals), part))
	defer r.closeRun()
	if err != nil {
		err = g.redactor.Error(err)
		return g.notStarted(plan, err), err
	}
	report, err := r.stages.Run(ctx, planned, r.info)
	err = g.redactor.Error(errors.Join(err, r.network.closeGateway()))
	g.addWarnings(g.engine.Warnings()...)
	return r.sealLog(report, err)
}

// commandTime returns the time for commands of a run that must end with ctx, or 0. Some of it is
// kept, so that a command that takes all of it is stopped and reported like any other.
func commandTime(ctx context.Context) time.Duration {
	end, limited := ctx.Deadline()
	if !limited {
		return 0
	}
	left := time.Until(end)
	return max(left-min(left/10, 10*time.Second), time.Nanosecond)
}

// checkCanRun returns an error if the Gate is closed or only decides.
func (g *Gate) checkCanRun() error {
	if err := g.checkOpen(); err != nil {
		return err
	}
	if g.o.DecideOnly {
		return invalidOptionsError("this gate only decides", "leave DecideOnly out to run a plan")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.session != nil {
		return busyError("this gate has an open session", "close it, or make another gate")
	}
	return nil
}

// NotStarted returns the report of a run with o that err stopped before it had a log. It
// is not redacted.
func (o Options) NotStarted(plan proposal.Plan, err error) proposal.Report {
	info := o.runSubject(plan)
	info.Start, info.Unenforced = time.Now(), append(info.Unenforced, o.Subject.Unenforced...)
	return proposal.Report{Schema: proposal.ReportSchema, Run: info, Records: []proposal.Record{},
		Error: proposal.FailureOf(err)}
}

func (g *Gate) notStarted(plan proposal.Plan, err error) proposal.Report {
	return g.redactor.Report(g.o.NotStarted(plan, err))
}

// openRun creates what one run needs, for a sandbox of o. The log comes last, so that there is no log
// without a run.
func (r *run) openRun(ctx context.Context, plan proposal.Plan, o sandbox.Options) (err error) {
	g, id := r.gate, runID()
	if r.info, err = g.describeRun(id, plan); err != nil {
		return err
	}
	if r.files, err = newPlace(g.o, id); err != nil {
		return err
	}
	g.addFiles(r.files.artifacts, r.files.audit)
	if r.redactor, err = redact.New(redact.Options{Masks: g.o.redactionMasks(), Decide: g.engine.Output,
		Artifacts: r.files.artifacts}); err != nil {
		return err
	}
	unread, err := r.redactor.CreateRawDir()
	if err != nil {
		return err
	}
	if r.log, err = audit.Create(r.files.audit,
		audit.Options{Origin: "fumehood/" + id, Signer: g.o.Signer}); err != nil {
		return err
	}
	return r.connectStages(o, unread)
}

// connectStages makes the stages of the run, for a sandbox of o that writes to unread.
func (r *run) connectStages(o sandbox.Options, unread string) error {
	g := r.gate
	observer, err := observe.New(r.log, g.engine.Event)
	if err != nil {
		return err
	}
	var log journal.Log = r.log
	if g.o.Health != nil {
		log = g.o.Health.Log(r.log)
	}
	go g.engine.Ready() // while the sandbox starts
	r.network = &network{o: g.o, engine: g.engine, observer: observer}
	r.stages = order.Stages{
		Checker: g.newChecker(), Log: log, Redactor: r.redactor, Unread: unread, Observer: observer,
		Lineage: &lineage.ProgramDecider{
			Exec: g.engine.Exec, Analyze: order.AnalyzeProposal, Start: g.engine.Start,
			DecideProgram: g.engine.DecideProgram,
			Confine:       policy.Confine, Path: strings.Split(o.Path, ":"), Workspace: g.engine.Workspace(),
		},
		Sandbox: o, Start: order.StartSandbox, Now: time.Now,
		Budget: r.budget, Progress: g.o.progress(),
		Network: r.network, NetworkAlways: g.o.ObserveNetworkUnsafe,
	}
	// No interface holds a nil pointer.
	if g.o.Health != nil {
		r.stages.Health, r.stages.Decided = g.o.Health, g.o.Health.CountDecision
	}
	if g.o.keepsLayers() || r.needsPrivateLayer() {
		r.layering = &setupLayering{run: r}
		r.stages.Layers = r.layering
	}
	if r.results = g.resultsOf(r); r.results != nil {
		r.stages.Results = r.results
	}
	if b := g.baseOf(r); b != nil {
		r.stages.Base = b
	}
	return nil
}

// sealLog ends the log and adds to the report how to verify it.
func (r *run) sealLog(report proposal.Report, err error) (proposal.Report, error) {
	checkpoint, sealErr := r.log.Seal()
	if sealErr != nil && err == nil {
		err = sealErr
		report.Error = proposal.FailureOf(err)
	}
	report.Audit = &proposal.Audit{Origin: r.log.Origin(), Key: r.log.Key(), Entries: r.log.Entries(),
		Checkpoint: checkpoint, File: r.log.Path()}
	if err == nil {
		r.saveResults(*report.Audit)
	}
	return report, err
}

// closeRun removes files that were never searched for secrets, and warns if that fails.
func (r *run) closeRun() {
	r.layering.closeLayer()
	if !r.gate.o.Repeated {
		if err := r.gate.layers.removeStore(); err != nil {
			r.gate.addWarnings("layers.left: cannot remove the layers of this run: " + err.Error())
		}
	}
	if err := r.redactor.Close(); err != nil {
		r.gate.addWarnings("output.left: cannot remove the output of commands that was not searched for secrets: " +
			err.Error())
	}
	if r.results != nil {
		_ = r.results.cache.Close()
	}
	if r.log != nil {
		_ = r.log.Close()
	}
}
