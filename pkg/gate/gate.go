// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/kit/lease"
	"github.com/fumehood/fumehood/internal/kit/points"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/explain"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/image/layers"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Gate decides plans and runs what is allowed. Its methods are safe for concurrent
// use; runs happen one at a time.
type Gate struct {
	o        Options
	redactor *redact.Redactor
	policies []policy.Layer // of Options.Policies, as New found them
	kept     *layers.Store  // of Options.Layers, nil if they are not used
	engine   *policy.Engine
	root     rootfs.Root
	image    *environment.Image // of root; nil for other roots
	tools    []proposal.Toolchain
	unmet    []proposal.Unmet
	modules  []proposal.GoModule
	runsc    install.Runsc
	sandbox  sandbox.Options // of every run: see order.Stages
	early    *sandbox.Pool   // the sandbox of the first run, or nil
	visible  *lease.Dir      // of a copy of the workspace, see Options.Hide; nil without one

	running sync.Mutex // held for a whole run
	layers  gateLayers // with running held

	mu       sync.Mutex
	closed   bool
	session  *session // the open session
	warnings []string
	left     []string
}

// New returns a Gate that is ready to run: the policy is compiled, and root, the
// workspace and fumehood-runsc are available. Without an installed fumehood-runsc it
// builds one, which takes a minute. Close must be called.
//
// Its error is a *proposal.StopError: options that contradict each other (gate.options),
// a policy that does not compile, or something that this host lacks.
func New(ctx context.Context, o Options) (*Gate, error) {
	o.Workspace, o.Policies = workspaceOf(o), slices.Clone(o.Policies)
	if err := o.checkOptions(); err != nil {
		return nil, err
	}
	o = o.observingOptions()
	redactor, err := redact.New(redact.Options{Masks: o.redactionMasks()})
	if err != nil {
		return nil, err
	}
	g := &Gate{o: o, redactor: redactor}
	if g.policies, err = o.policyLayers(); err != nil {
		return nil, redactor.Error(err)
	}
	if o.DecideOnly {
		err = g.loadPolicy(ctx)
	} else {
		g.o.Ceiling = underHost(o.Ceiling)
		err = g.prepareRun(ctx)
	}
	if err == nil {
		err = g.completeContext()
	}
	if err != nil {
		_, _ = g.image.Close(), g.removeVisible()
		return nil, g.redactor.Error(err)
	}
	return g, nil
}

// loadPolicy compiles the policy.
func (g *Gate) loadPolicy(ctx context.Context) (err error) {
	g.engine, err = policy.New(ctx, policy.Options{Layers: g.policies, Observe: g.o.ObserveUnsafe,
		AllowTools: g.o.AllowTools, Workspace: g.o.workspaceInside(), Context: g.o.Subject.Context})
	return err
}

// completeContext adds to the policy's context what is only known now: the root's image.
func (g *Gate) completeContext() (err error) {
	c := g.o.Subject.Context
	if c.Started == "" {
		c.Started = points.FormatStarted(time.Now())
	}
	if !g.o.DecideOnly {
		c.Credentials = g.o.credentialNames()
		c.Image = withSigners(g.image.ContextImage(), c.Image)
	}
	g.engine, err = g.engine.WithContext(c)
	return err
}

// credentialNames are the variables of o's credentials, sorted.
func (o Options) credentialNames() (names []string) {
	for _, c := range o.Credentials {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// withSigners returns root with the signers of given, if that is the same image. A root without a digest has none.
func withSigners(root, given proposal.ContextImage) proposal.ContextImage {
	if root.Digest != "" && root.Digest == given.Digest {
		root.Signers = given.Signers
	}
	return root
}

// prepareRun compiles the policy while fumehood-runsc is verified or built, and the sandbox of
// Options.Plan starts. The build has ended on every return, and an unfinished build is removed.
func (g *Gate) prepareRun(ctx context.Context) (err error) {
	if err := process.CheckRoot(); err != nil {
		return err
	}
	if err := g.openLayers(); err != nil {
		return err
	}
	sweepLayers()
	inner, cancel := context.WithCancel(ctx)
	load := sync.OnceValue(func() error { return g.loadPolicy(inner) })
	find := sync.OnceValues(func() (install.Runsc, error) {
		return install.Find(inner, install.Options{Path: g.o.Runsc, Build: true, Progress: g.o.sendNotice})
	})
	sandboxed := sync.OnceValues(func() (sandbox.Options, error) { return g.findSandbox(inner, find) })
	go load()
	go find()
	go sandboxed()
	defer func() {
		cancel()
		_ = load()
		_, _ = find()
		_, _ = sandboxed()
		if err != nil {
			err = errors.Join(err, g.early.Close())
		}
	}()
	if err := load(); err != nil {
		return err
	}
	if g.sandbox, err = sandboxed(); err != nil {
		return err
	}
	for _, text := range g.root.Warnings(g.tools) {
		g.o.sendNotice("warning: " + text)
	}
	g.unmet, g.modules = g.findUnmet(ctx), g.findGoModules()
	for _, u := range g.unmet {
		g.o.sendNotice("warning: " + terminal.EscapeLine(diagnose.DescribeUnmet(u)))
	}
	if text := belowTop(g.o.Workspace); text != "" {
		g.o.sendNotice("warning: " + text)
	}
	return nil
}

// findSandbox returns what the sandbox is made of, with the fumehood-runsc that find returns.
func (g *Gate) findSandbox(ctx context.Context, find func() (install.Runsc, error)) (o sandbox.Options, err error) {
	search := g.o.search()
	if err := g.openRoot(ctx, search); err != nil {
		return o, err
	}
	for _, dir := range g.o.ToolsRequired {
		if err := g.root.CheckVisible(search, dir); err != nil {
			return o, err
		}
	}
	g.tools = environment.FindToolchains(ctx, g.root, search) // while runsc is found
	goCache := g.goCache(ctx, search)
	if g.runsc, err = find(); err != nil {
		return o, err
	}
	if o, err = g.sandboxOptions(ctx); err != nil {
		return o, err
	}
	if goCache != "" {
		o.Trees = append(o.Trees, sandbox.Bind{Source: goCache, Target: rootfs.GoCacheInside})
	}
	if err := g.checkHidden(o); err != nil {
		return o, err
	}
	g.startEarly(o)
	return o, nil
}

func (g *Gate) sandboxOptions(ctx context.Context) (sandbox.Options, error) {
	workspace, err := g.visibleWorkspace(ctx)
	if err != nil {
		return sandbox.Options{}, err
	}
	o, err := environment.SandboxOptions(workspace, g.root, g.runsc)
	o.UserHome = g.o.UserHome
	for _, m := range g.o.MountsUnsafe {
		if err != nil {
			return o, err
		}
		var bind sandbox.Bind
		bind, err = environment.BindMount(m.Source, m.Target)
		o.Trees = append(o.Trees, bind)
	}
	return o, err
}

// Check decides every proposal of plan and runs nothing. The Records contain the plan's
// own text, not redacted. With an error every Record is denied.
func (g *Gate) Check(ctx context.Context, plan proposal.Plan) ([]proposal.Record, error) {
	planned, _ := g.o.planner().Plan(plan)
	return g.checkPlanned(ctx, planned)
}

// checkPlanned decides every proposal of planned.
func (g *Gate) checkPlanned(ctx context.Context, planned proposal.Plan) ([]proposal.Record, error) {
	if err := g.checkOpen(); err != nil {
		return nil, err
	}
	records, err := g.newChecker().Check(ctx, planned)
	g.addWarnings(g.engine.Warnings()...)
	return records, err
}

// planner returns what makes of a plan what is decided. A run that was asked to make a layer for later runs,
// whose plans are others, runs all of set-up.
func (o Options) planner() planning.Planner {
	return planning.Planner{Setup: o.Setup.toSetup(), Limits: o.Limits, Directory: o.Subject.Cwd,
		Whole: o.Layers.Mode == "write"}
}

// wholePlanner is planner with all of set-up.
func (o Options) wholePlanner() planning.Planner {
	pl := o.planner()
	pl.Whole = true
	return pl
}

// newChecker returns what decides for g.
func (g *Gate) newChecker() order.Checker {
	return order.Checker{Policy: g.engine, Adviser: explain.NewAdviser(g.engine, order.AnalyzeProposal),
		Ceiling: g.o.Ceiling, ReadFile: g.readCommitted}
}

// checkOpen returns an error if the Gate is closed.
func (g *Gate) checkOpen() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return &proposal.StopError{Code: "gate.closed", Message: "the gate was closed",
			Hint: "make another with gate.New"}
	}
	return nil
}

// Toolchains returns the toolchains that commands find.
func (g *Gate) Toolchains() []proposal.Toolchain { return slices.Clone(g.tools) }

// PolicyDigest returns the digest of the policy that decides every command of g.
func (g *Gate) PolicyDigest() string { return g.engine.Digest() }

// HasSetup reports whether set-up precedes the commands of a plan that may need it.
func (g *Gate) HasSetup() bool { return len(g.o.Setup.Steps)+len(g.o.Setup.Services) > 0 }

// Close closes an open session, waits for a run to end, and refuses later calls. Files
// that runs keep on purpose, see Files, stay.
func (g *Gate) Close() error {
	g.mu.Lock()
	session := g.session
	g.mu.Unlock()
	if session != nil {
		_, _ = session.Close()
	}
	g.running.Lock()
	defer g.running.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	return errors.Join(g.early.Close(), g.layers.removeStore(), g.image.Close(), g.removeVisible())
}

// Warnings returns the problems in runs and checks that did not stop them, one line each:
// statements of a policy layer that have no effect, and files that could not be removed.
func (g *Gate) Warnings() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.warnings...)
}

func (g *Gate) addWarnings(texts ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, text := range texts {
		if !slices.Contains(g.warnings, text) { // an engine repeats its own
			g.warnings = append(g.warnings, text)
		}
	}
}

// Files returns the paths that runs have created on the host: artifacts and logs,
// including those of runs that stopped early.
func (g *Gate) Files() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.left...)
}

func (g *Gate) addFiles(paths ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = append(g.left, paths...)
}
