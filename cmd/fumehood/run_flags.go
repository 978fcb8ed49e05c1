// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/demotools"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/egress"
	"github.com/fumehood/fumehood/pkg/egress/registry"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/redact"
	"github.com/fumehood/fumehood/pkg/report/progress"
)

// runFlags are the flags of run and demo.
type runFlags struct {
	plan, workspace string
	policies        policyFlags
	rootfs          string
	mounts          cli.List
	resolvers       cli.List
	registries      string
	credentials     cli.List
	runsc           string
	artifacts       string
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
	masks           cli.List // variables
	maskStdin       bool
	handed          []redact.Mask    // by fumehood action
	early           *redact.Redactor // before there is a gate, with no policy
	export          exportFlags
	steps           bool   // print a line for each command on a pipe, too; for demo
	buildCache      string // a host folder to show at demotools.BuildCacheInside, or ""; for demo
}

func (s *runFlags) define(f *flag.FlagSet) {
	f.StringVar(&s.plan, "plan", "", "plan of proposals, JSON or YAML; - for stdin")
	f.StringVar(&s.workspace, "workspace", ".", "folder with the pull request's code; it is never written to")
	f.BoolVar(&s.observe, "observe", false, "record what the --policy and --granting policies would refuse, and refuse only what the default policy does")
	f.StringVar(&s.about, "about", "", "JSON `file` that says which pull request this is; fumehood action writes it")
	f.StringVar(&s.registries, "registries", "", "JSON `file` that says where packages are found, in place of this host's tools; fumehood action writes it")
	f.StringVar(&s.owner, "owner", "", "give the artifacts to `UID:GID`")
	f.BoolVar(&s.maskStdin, "mask-stdin", false, "read values to mask from standard input; fumehood action writes them")
	f.BoolVar(&s.lifeline, "lifeline", false, "stop when standard input ends")
	s.export.define(f)
	s.defineCommon(f)
}

func (s *runFlags) defineCommon(f *flag.FlagSet) {
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
func (c *invocation) readPlan(path string, u *redact.Redactor) (proposal.Plan, int, bool) {
	data, name, err := plan.ReadFile(path, c.Stdin)
	if err != nil {
		return proposal.Plan{}, c.Misuse(fmt.Sprintf("cannot read plan: %v", err)), false
	}
	p, problems := plan.Decode(data, name)
	for _, problem := range problems {
		fmt.Fprintf(c.Stderr, "fumehood: %s\n", u.Text(plan.Describe(name, problem)))
	}
	if len(problems) > 0 {
		fmt.Fprintln(c.Stderr, "fumehood: plan.invalid: the plan was rejected as a whole; nothing runs")
		return p, exitUsage, false
	}
	for _, w := range plan.Warnings(data, name) {
		c.Warn(plan.Describe(name, w))
	}
	return p, exitOK, true
}

// open makes the gate that the flags describe. What the flags say wrongly is refused
// first, also where no command will need it.
func (c *invocation) open(s *runFlags) (*gate.Gate, error) {
	if err := gate.Privileged(); err != nil { // before anything that takes time
		return nil, err
	}
	a, err := gate.ReadAbout(s.about)
	if err != nil {
		return nil, err
	}
	o, err := s.options(a)
	if err != nil {
		return nil, err
	}
	p := progress.New(c.Stderr)
	if s.steps {
		p = p.WithSteps()
	}
	o.Progress, o.Notice = p.Step, p.Notice
	s.policies.Directory, s.policies.Origins = s.workspace, a.Policies
	if o.Policies, err = s.policies.Read(c.Ctx); err != nil {
		return nil, err
	}
	return newGate(c.Ctx, o)
}

// options are those that need no file but a key.
func (s *runFlags) options(a gate.About) (gate.Options, error) {
	o, err := s.secrets()
	if err != nil {
		return o, err
	}
	for _, text := range s.resolvers {
		server, err := gate.ParseResolver(text)
		if err != nil {
			return o, err
		}
		o.Resolvers = append(o.Resolvers, server)
	}
	if o.MountsUnsafe, err = s.mounted(); err != nil {
		return o, err
	}
	if s.auditKey != "" {
		if o.Signer, err = audit.ReadSigner(s.auditKey); err != nil {
			return o, err
		}
	}
	o.Workspace, o.Rootfs, o.Tools, o.Runsc = s.workspace, s.rootfs, s.tools, s.runsc
	o.Artifacts, o.AuditFile, o.Version, o.Gateway = s.artifacts, s.auditFile, fumehoodVersion(), []string{"/proc/self/exe", egress.DoorName}
	o.ObserveUnsafe, o.Ceiling, o.Subject = s.observe, a.Ceiling, a.Subject()
	if s.registries != "" {
		o.Registries = func(context.Context, []string) ([]registry.Registry, error) { return registry.ReadFile(s.registries) }
	}
	return o, nil
}

// readMasks learns what must not be printed before anything is.
func (s *runFlags) readMasks(stdin io.Reader) (err error) {
	if s.maskStdin {
		if s.handed, err = redact.ReadMasks(stdin); err != nil {
			return err
		}
	}
	o, err := s.secrets()
	if err == nil {
		s.early, err = gate.NewRedactor(o)
	}
	return err
}

// secrets are the options of what must never be printed.
func (s *runFlags) secrets() (o gate.Options, err error) {
	o.Masks = s.handed
	for _, name := range s.masks {
		m, err := redact.MaskOf(name, os.Getenv)
		if err != nil {
			return o, err
		}
		o.Masks = append(o.Masks, m)
	}
	for _, text := range s.credentials {
		c, err := gate.ParseCredential(text, os.Getenv)
		if err != nil {
			return o, err
		}
		o.Credentials = append(o.Credentials, c)
	}
	return o, nil
}

// mounted are the host folders that can be read inside.
func (s *runFlags) mounted() ([]gate.Mount, error) {
	var list []gate.Mount
	if s.buildCache != "" {
		list = append(list, gate.Mount{Source: s.buildCache, Target: demotools.BuildCacheInside,
			Note: "Go's build cache " + s.buildCache + " on the host is readable inside, so that the demo's Go test takes seconds"})
	}
	for _, text := range s.mounts {
		m, err := gate.ParseMount(text)
		if err != nil {
			return nil, err
		}
		m.Note = "the host folder " + text + " can be read inside, because --mount says so"
		list = append(list, m)
	}
	return list, nil
}

// logName is how the report names the log: from a desk its path, in a job its name
// among the files of the artifact.
func (s *runFlags) logName(path string) string {
	if s.about != "" {
		return filepath.Base(path)
	}
	return path
}

// left names what this run has made so far; g may be nil.
func (s *runFlags) left(g *gate.Gate) []string {
	var paths []string
	for _, path := range []string{s.report, s.markdown, s.export.decisions} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if g != nil {
		paths = append(paths, g.Files()...)
	}
	return paths
}
