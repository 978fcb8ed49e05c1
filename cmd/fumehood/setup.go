// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/egress"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/job"
	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/plan"
	"github.com/fumehood/fumehood/pkg/proposal"
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
	early           *outlet.Outlet // before there is a gate, with no policy
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

// open makes the gate that the flags describe. What the flags say wrongly is refused
// first, also where no command will need it.
func (c *call) open(s *setup) (*gate.Gate, error) {
	if err := gate.Privileged(); err != nil { // before anything that takes time
		return nil, err
	}
	a, err := job.ReadAbout(s.about)
	if err != nil {
		return nil, err
	}
	o, err := s.options(a)
	if err != nil {
		return nil, err
	}
	progress := newProgress(c.stderr)
	progress.steps = s.steps
	o.Progress, o.Notice = progress.step, progress.always
	s.policies.near = s.workspace
	if o.Policies, err = s.policies.gate(c.ctx, a.Policies); err != nil {
		return nil, err
	}
	return newGate(c.ctx, o)
}

// options are those that need no file but a key.
func (s *setup) options(a job.About) (gate.Options, error) {
	o, err := s.secrets()
	if err != nil {
		return o, err
	}
	if o.Resolvers, err = s.servers(); err != nil {
		return o, err
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
	o.Registries, o.ObserveUnsafe, o.Ceiling, o.Subject = registriesFrom(s.registries), s.observe, a.Ceiling, a.Subject()
	return o, nil
}

// mounted are the host folders that can be read inside.
func (s *setup) mounted() ([]gate.Mount, error) {
	var list []gate.Mount
	if s.buildCache != "" {
		list = append(list, gate.Mount{Source: s.buildCache, Target: buildCacheInside,
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
func (s *setup) logName(path string) string {
	if s.about != "" {
		return filepath.Base(path)
	}
	return path
}

// left names what this run has made so far; g may be nil.
func (s *setup) left(g *gate.Gate) []string {
	var paths []string
	for _, path := range []string{s.report, s.markdown, s.sending.decisions} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if g != nil {
		paths = append(paths, g.Files()...)
	}
	return paths
}
