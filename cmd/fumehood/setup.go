// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/rootfs"
	"github.com/fumehood/fumehood/pkg/sandbox"
	"github.com/fumehood/fumehood/pkg/sandbox/install"
)

// A setup is what the flags of run and demo say.
type setup struct {
	plan, workspace string
	policies        chosen
	rootfs          string
	mounts          list
	resolvers       list
	registries      string
	credentials     list
	runsc           string
	artifacts       string
	placed          string // the artifacts folder, once it is ours
	auditFile       string
	auditKey        string
	report          string
	markdown        string
	json            bool
	timeout         time.Duration
	observe         bool
	tools           string
	about           string
	owner           string
	lifeline        bool
	masks           list // variables
	maskStdin       bool
	handed          []outlet.Mask  // by fumehood action
	early           *outlet.Outlet // before there is outlet, with no policy and no folders
	outlet          *outlet.Outlet
	sending         sending
	steps           bool   // print a line for each command on a pipe, too; for demo
	buildCache      string // a host folder to show at buildCacheInside, or ""; for demo
}

func (s *setup) define(f *flag.FlagSet) {
	f.StringVar(&s.plan, "plan", "", "plan of proposals, JSON or YAML; - for stdin")
	f.StringVar(&s.workspace, "workspace", ".", "folder with the pull request's code; it is never written to")
	f.BoolVar(&s.observe, "observe", false, "record what the --policy and --granting policies would refuse, and refuse only what the default policy does")
	f.StringVar(&s.about, "about", "", "JSON `file` that says which pull request this is; fumehood action writes it")
	f.StringVar(&s.registries, "registries", "", "JSON `file` that says where packages are found, in place of this host's tools; fumehood action writes it")
	f.StringVar(&s.owner, "owner", "", "give the artifacts to `UID:GID`")
	f.BoolVar(&s.maskStdin, "mask-stdin", false, "read values to mask from standard input; fumehood action writes them")
	f.BoolVar(&s.lifeline, "lifeline", false, "stop when standard input ends")
	s.sending.define(f)
	s.defineCommon(f)
}

func (s *setup) defineCommon(f *flag.FlagSet) {
	s.policies.define(f)
	f.StringVar(&s.rootfs, "rootfs", "host", "root file system inside: host, or dir:PATH")
	f.StringVar(&s.tools, "tools", os.Getenv("PATH"), "`folders` of the host's tools, separated by colons, that are shown inside")
	f.Var(&s.mounts, "mount", "host folder to show inside as `SRC[:DST]`, such as a module cache; writes to it are thrown away; may be repeated")
	f.Var(&s.resolvers, "resolver", "`address` of a name server for hosts that policy grants (default: the host's); may be repeated")
	f.Var(&s.credentials, "credential", "put this variable's value on requests to a host that policy grants: `NAME@HOST[/PATH]`; inside it is a placeholder; may be repeated")
	f.Var(&s.masks, "mask", "`variable` whose value must never appear in what leaves the run; may be repeated. Values of --credential never do")
	f.StringVar(&s.runsc, "runsc", "", "use this fumehood-runsc")
	f.StringVar(&s.artifacts, "artifacts", "", "new folder for outputs and whole streams (default: one a run, below the user's state folder)")
	f.StringVar(&s.auditFile, "audit", "", "new file for the audit log (default: audit.jsonl among the artifacts)")
	f.StringVar(&s.auditKey, "audit-key", "", "file with the key that signs the audit log (default: a new key a run, told in the report)")
	f.StringVar(&s.report, "report", "", "write the report as JSON to this file")
	f.StringVar(&s.markdown, "markdown", "", "write the comment to this file")
	f.BoolVar(&s.json, "json", false, "print the report as JSON instead of the comment")
	f.DurationVar(&s.timeout, "timeout", 0, "stop everything after this time, for example 10m")
}

// readPlan reads the plan and prints what is wrong with it, as u lets it; u may be nil.
func (c *call) readPlan(path string, u *outlet.Outlet) (proposal.Plan, int, bool) {
	data, name, err := c.planBytes(path)
	if err != nil {
		return proposal.Plan{}, c.misuse(fmt.Sprintf("cannot read plan: %v", err)), false
	}
	p, problems := plan.Decode(data, name)
	for _, problem := range problems {
		fmt.Fprintf(c.stderr, "fumehood: %s\n", u.Text(plan.Describe(name, problem)))
	}
	if len(problems) > 0 {
		fmt.Fprintln(c.stderr, "fumehood: plan.invalid: the plan was rejected as a whole; nothing runs")
		return p, exitUsage, false
	}
	return p, exitOK, true
}

// planBytes reads one byte more than a plan may have, so that Decode refuses what
// is too large and we never hold more.
func (c *call) planBytes(path string) ([]byte, string, error) {
	if path == "-" {
		data, err := io.ReadAll(io.LimitReader(c.stdin, plan.MaxDocument+1))
		return data, "stdin", err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, path, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, plan.MaxDocument+1))
	return data, path, err
}

// wired is a hood with all that it stands on.
type wired struct {
	hood    *hood.Hood
	log     *audit.Log
	engine  *policy.Engine
	network *network
	run     proposal.Run
}

// wire makes every stage, dearest last, so that a mistake is told early.
func (c *call) wire(s *setup, p proposal.Plan) (*wired, error) {
	progress := newProgress(c.stderr)
	if err := checkPrivilege(); err != nil {
		return nil, err
	}
	progress.steps = s.steps
	// runsc is built or verified while policy is loaded. On every way out of here the
	// build has ended: what it had not finished is removed.
	ctx, cancel := context.WithCancel(c.ctx)
	find := begin(func() (install.Runsc, error) {
		return install.Find(ctx, install.Options{Path: s.runsc, Build: true, Progress: progress.always})
	})
	defer func() { cancel(); _, _ = find() }()
	a, err := readAbout(s.about)
	if err != nil {
		return nil, err
	}
	if err := s.checkNetwork(); err != nil {
		return nil, err
	}
	if _, err := s.masked(); err != nil {
		return nil, err
	}
	s.policies.near = s.workspace
	engine, err := s.policies.engine(c.ctx, s.observe)
	if err != nil {
		return nil, err
	}
	root, err := rootfs.Open(s.rootfs, s.tools)
	if err != nil {
		return nil, err
	}
	runsc, err := find()
	if err != nil {
		return nil, err
	}
	id := runID()
	if err := s.place(id); err != nil {
		return nil, err
	}
	if err := s.newOutlet(engine); err != nil {
		return nil, err
	}
	options, err := s.sandboxOptions(root, runsc)
	if err != nil {
		return nil, err
	}
	if options.Artifacts, err = s.outlet.Raw(); err != nil {
		return nil, err
	}
	log, err := s.openLog(id) // the last that can stop it: no log is left without its run
	if err != nil {
		return nil, err
	}
	w := &wired{log: log, engine: engine, run: describeRun(id, s, p, engine, root, runsc)}
	a.describe(&w.run, s.policies.named)
	observer, gate := watch(c.ctx, engine, log, &options)
	observer.Clean = s.outlet.Event
	w.network = &network{setup: s, engine: engine, observer: observer, sandbox: &options}
	w.hood = &hood.Hood{
		Parse: analyse, Policy: engine, Log: log, Now: time.Now, Progress: progress.step,
		Ceiling: a.Ceiling, Observer: observer, Network: w.network, Outlet: s.outlet, Advise: policy.NewAdviser(engine, analyse).Advise, Begin: gate.Begin,
		Sandbox: func(l proposal.Limits) (hood.Runner, error) {
			options.Limits = l
			return sandbox.New(options), nil
		},
	}
	return w, nil
}

// begin runs f in the background and returns a function that waits for its result.
func begin[T any](f func() (T, error)) func() (T, error) {
	var result T
	var err error
	done := make(chan struct{})
	go func() { defer close(done); result, err = f() }()
	return func() (T, error) { <-done; return result, err }
}

// checkPrivilege is asked before runsc is built, which takes a minute or two.
func checkPrivilege() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &proposal.StopError{Code: "sandbox.not-root", Message: "cannot run commands: cgroups, mounts and namespaces need root",
		Hint: "run fumehood as root or with sudo; fumehood check decides without it"}
}

func runID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:])
}

// place decides where the run leaves its files. The folder must be new: what
// another run left there is never taken for this one's.
func (s *setup) place(id string) error {
	if s.artifacts == "" {
		state, err := stateHome()
		if err != nil {
			return placeError("fumehood/"+id, err)
		}
		s.artifacts = filepath.Join(state, "fumehood", id)
	}
	if err := os.MkdirAll(filepath.Dir(s.artifacts), 0o700); err != nil {
		return placeError(s.artifacts, err)
	}
	if err := os.Mkdir(s.artifacts, 0o700); err != nil {
		return placeError(s.artifacts, err)
	}
	s.placed = s.artifacts
	if s.auditFile == "" {
		s.auditFile = filepath.Join(s.artifacts, "audit.jsonl")
	}
	return nil
}

// stateHome is the user's state folder. Main has set HOME where it was not set.
func stateHome() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return state, nil
	}
	dir, err := os.UserHomeDir()
	return filepath.Join(dir, ".local", "state"), err
}

// logName is how the report names the log: from a desk its path, in a job its name
// among the files of the artifact.
func (s *setup) logName(path string) string {
	if s.about != "" {
		return filepath.Base(path)
	}
	return path
}

// left names what this run has made so far.
func (s *setup) left() []string {
	var paths []string
	for _, path := range []string{s.placed, s.report, s.markdown, s.sending.decisions} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if s.placed != "" {
		paths = append(paths, s.auditFile)
	}
	return paths
}

func placeError(dir string, err error) error {
	return &proposal.StopError{Code: "artifacts.not-writable", Message: fmt.Sprintf("cannot make folder %q", dir),
		Hint: "name a new folder with --artifacts", Err: err}
}

func (s *setup) openLog(id string) (*audit.Log, error) {
	o := audit.Options{Origin: "fumehood/" + id}
	if s.auditKey != "" {
		signer, err := audit.ReadSigner(s.auditKey)
		if err != nil {
			return nil, err
		}
		o.Signer = signer
	}
	return audit.Create(s.auditFile, o)
}

func (s *setup) sandboxOptions(root rootfs.Root, runsc install.Runsc) (sandbox.Options, error) {
	workspace, err := folder(s.workspace)
	if err != nil {
		return sandbox.Options{}, err
	}
	o := sandbox.Options{
		Verify: runsc.Unchanged,
		Runsc:  runsc.Path, Init: runsc.Init, Links: root.Links, Files: root.Files, Path: root.Path,
		Workspace: workspace, Env: toolEnv(), Guard: gitGuard(),
	}
	for target, source := range root.Binds {
		o.Binds = append(o.Binds, sandbox.Bind{Source: source, Target: target})
	}
	if s.buildCache != "" {
		o.Trees = append(o.Trees, sandbox.Bind{Source: s.buildCache, Target: buildCacheInside})
	}
	for _, m := range s.mounts {
		bind, err := mountOf(m)
		if err != nil {
			return o, err
		}
		o.Trees = append(o.Trees, bind)
	}
	return o, nil
}

// folder resolves what a person wrote to the folder itself, links followed: the
// sandbox mounts it without following any.
func folder(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", &proposal.StopError{Code: "sandbox.workspace", Message: fmt.Sprintf("folder %q cannot be read", path),
			Hint: "name the folder that holds the pull request's code with --workspace", Err: err}
	}
	return abs, nil
}

// mountOf reads SRC[:DST].
func mountOf(text string) (sandbox.Bind, error) {
	source, target, found := strings.Cut(text, ":")
	abs, err := filepath.Abs(source)
	if err != nil {
		return sandbox.Bind{}, err
	}
	if !found {
		target = abs
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	info, err := os.Stat(abs)
	if err != nil || !info.IsDir() || !mountTarget(target) {
		return sandbox.Bind{}, &proposal.StopError{Code: "mount.invalid", Message: fmt.Sprintf("mount %q is not FOLDER or FOLDER:/PATH/INSIDE", text),
			Hint: "for example --mount ~/go/pkg/mod:/home/fumehood/go/pkg/mod", Err: err}
	}
	return sandbox.Bind{Source: abs, Target: target}, nil
}

// mountTarget refuses the places that are the sandbox's own.
func mountTarget(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return false
	}
	for _, own := range []string{"/proc", "/sys", "/dev", "/.fumehood", "/workspace", "/etc", "/tmp"} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return false
		}
	}
	return true
}

// toolEnv keeps well-known tools from waiting for a network, a pager or a person.
func toolEnv() map[string]string {
	return map[string]string{
		"CI": "true", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0",
		"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOTELEMETRY": "off", "GOFLAGS": "-buildvcs=false",
		"PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
		"npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false",
		"CARGO_NET_OFFLINE": "true", "DEBIAN_FRONTEND": "noninteractive",
	}
}

func describeRun(id string, s *setup, p proposal.Plan, engine *policy.Engine, root rootfs.Root, runsc install.Runsc) proposal.Run {
	workspace, _ := filepath.Abs(s.workspace)
	return proposal.Run{
		ID: id, Proposer: p.Proposer, PlanDigest: p.Digest, Workspace: filepath.Base(workspace),
		Mode: mode(s.observe), Policy: engine.Digest(), Policies: s.policies.origins, Rootfs: root.String(), Runsc: runsc.Version, Version: fumehoodVersion(),
		Enforced: []string{
			"gVisor (systrap) around every command", "policy on every program that a command starts", networkWords(p), "no credentials, empty environment",
			"unprivileged user without capabilities", "workspace on the host unchanged",
			"limits on time, processor, memory, processes, disk, open files and output",
		},
		Unenforced: unenforced(s, runsc),
	}
}

// networkWords say what holds whatever policy decides about this plan.
func networkWords(p proposal.Plan) string {
	for _, q := range p.Proposals {
		if len(q.Network) > 0 {
			return "no network but what policy grants a command, through a gateway that asks it about every name and connection"
		}
	}
	return "no network"
}

func mode(observe bool) string {
	if observe {
		return "observe"
	}
	return "enforce"
}

func unenforced(s *setup, runsc install.Runsc) []string {
	list := []string{}
	if s.observe {
		list = append(list, "the policy on trial: it is only observed, and what it would refuse is said below")
	}
	if s.buildCache != "" {
		list = append(list, "Go's build cache "+s.buildCache+" on the host is readable inside, so that the demo's Go test takes seconds")
	}
	for _, m := range s.mounts {
		list = append(list, "the host folder "+m+" can be read inside, because --mount says so")
	}
	return list
}
