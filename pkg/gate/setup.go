// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/image/oci"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/config/devcontainer"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// ReadConfig reads the configuration file name and applies overrides, which come from the
// operator. If name is empty, the workspace's own file is read where there is one; it must
// not choose what commands can see of the host, because it can be a pull request's. "none"
// reads no file. Its error is a *proposal.StopError.
func ReadConfig(name, workspace string, overrides ...config.Override) (config.Effective, error) {
	var file config.Config
	data, err := []byte(nil), error(nil)
	workspaceFile := name == ""
	switch name {
	case "none":
	case "":
		name = config.Path
		data, err = readInside(workspace, name)
	default:
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return config.Effective{}, &proposal.StopError{Code: "config.unreadable", Message: fmt.Sprintf("cannot read the configuration %q", name), Hint: "name a file with --config, or --config none", Err: err}
	}
	if filepath.Base(name) == filepath.Base(config.Path) {
		name = config.Path // what people call it, wherever it was copied to
	}
	if data != nil {
		var problems []proposal.Problem
		if file, problems = config.Decode(data, name); len(problems) > 0 {
			return config.Effective{}, invalidConfig(name, problems)
		}
	}
	if workspaceFile && (file.Rootfs != "" || len(file.Tools) > 0) {
		return config.Effective{}, &proposal.StopError{Code: "config.untrusted", Message: "rootfs or tools in the workspace's own " + config.Path + ": they choose what of this host commands can see",
			Hint: "if you trust this file, name it: --config " + config.Path}
	}
	merged, err := config.MergeOverrides(file, overrides...)
	if err != nil {
		return merged, &proposal.StopError{Code: codeConfig, Message: "invalid configuration: " + err.Error(), Hint: "see fumehood run --help", Err: nil}
	}
	return merged, nil
}

// codeConfig is the code of a configuration that is invalid.
const codeConfig = "config.invalid"

// readInside reads a file of the workspace without following links out of it; nil if it
// is not there.
func readInside(workspace, name string) ([]byte, error) {
	root, err := os.OpenRoot(workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // reported by the sandbox, with its code
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would block
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, config.MaxDocument+1))
}

func invalidConfig(name string, problems []proposal.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = config.Describe(name, p)
	}
	return &proposal.StopError{Code: codeConfig, Message: "invalid configuration: " + strings.Join(lines, "; "), Hint: "fix the file: testdata/schema/fumehood.config.v1.json is its schema"}
}

// Configure applies a configuration to o: set-up and services, root file system and tools,
// limits of commands that request none, cache. Workspace must be set. The caller applies
// the rest: timeout, policy, checkout. If the root is an image, it is opened, and pulled if
// necessary: set-up depends on the tools in it.
func (o *Options) Configure(ctx context.Context, c config.Config) (err error) {
	if c.Rootfs != "" && (o.Rootfs == "" || o.Rootfs == "host") {
		o.Rootfs = c.Rootfs
	}
	o.Tools = strings.Join(append(slices.Clone(c.Tools), filepath.SplitList(o.Tools)...), string(filepath.ListSeparator))
	o.ToolsRequired = c.Tools
	o.Limits, o.Cache = c.Limits, !c.Cache.Off
	var d devcontainer.Config
	if isDevcontainer(o.Rootfs) {
		if d, err = o.applyDevcontainer(c); err != nil {
			return err
		}
	}
	if oci.Is(o.Rootfs) {
		if o.image, err = openImageRoot(ctx, o.Rootfs, o.notice); err != nil {
			return err
		}
	}
	c.Rootfs = o.Rootfs
	o.Setup, err = o.findSetup(c)
	addDevcontainer(&o.Setup, c, d)
	return err
}

// findSetup is FindSetup, with the files of the image if there is one.
func (o *Options) findSetup(c config.Config) (setup.Setup, error) {
	if o.image == nil {
		return FindSetup(c, o.Workspace, o.Tools)
	}
	s, err := findSteps(c, o.Workspace, func(name string) (string, error) {
		if path := o.image.root.Lookup(name); path != "" {
			return path, nil
		}
		return "", exec.ErrNotFound
	})
	s.AddServices(c.Services, o.image.root.FS())
	return s, err
}

// FindSetup returns the set-up that c requests for the repository in workspace: what is
// detected there, c's commands, or nothing; and the services that c requests. A tool that is in none of the directories tools,
// separated by colons, is not used; of an image, which is not read, every tool is. c must come from the maintainer, never from a
// pull request. The commands are decided by policy like any other; only in their phase, and
// only to this set-up, the default policy grants the registries that they request.
func FindSetup(c config.Config, workspace, tools string) (setup.Setup, error) {
	look, root := func(name string) (string, error) { return lookIn(tools, name) }, "/"
	if dir, ok := strings.CutPrefix(c.Rootfs, "dir:"); ok {
		root = dir
	}
	if oci.Is(c.Rootfs) || isDevcontainer(c.Rootfs) {
		look = func(name string) (string, error) { return "/usr/bin/" + name, nil }
	}
	s, err := findSteps(c, workspace, look)
	s.AddServices(c.Services, os.DirFS(root))
	return s, err
}

func findSteps(c config.Config, workspace string, look func(string) (string, error)) (setup.Setup, error) {
	switch c.Setup.Mode {
	case config.None:
		return setup.Setup{}, nil
	case config.Listed:
		return listedSetup(c), nil
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return setup.Setup{}, &proposal.StopError{Code: "sandbox.workspace", Message: fmt.Sprintf("cannot read the directory %q", workspace), Hint: "name the directory that holds the pull request's code", Err: err}
	}
	defer root.Close()
	s := setup.Detector{LookPath: look}.Detect(root.FS())
	return onlyAllowed(c, s), nil
}

// onlyAllowed removes the steps that request a registry which c does not list, and those
// that need such a step, with a note for each.
func onlyAllowed(c config.Config, s setup.Setup) setup.Setup {
	left := map[string]bool{}
	s.Steps = slices.DeleteFunc(s.Steps, func(step setup.Step) bool {
		left[step.ID] = !allowed(c, step.Network) || slices.ContainsFunc(step.Needs, func(id string) bool { return left[id] })
		if left[step.ID] {
			file, _, _ := strings.Cut(step.Why, ": ")
			s.Notes = append(s.Notes, setup.Note{File: file, Text: fmt.Sprintf("left out: the configured registries do not allow %q", order.AnalyzeProposal(step.Proposal).Canonical)})
		}
		return left[step.ID]
	})
	return s
}

// lookIn finds a program in a list of directories like PATH: this process may have another.
func lookIn(directories, name string) (string, error) {
	for _, dir := range filepath.SplitList(directories) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// allowed reports whether c lets set-up request all the entries.
func allowed(c config.Config, network []string) bool {
	return !slices.ContainsFunc(network, func(entry string) bool { return !c.Registries.Allow(strings.TrimPrefix(entry, "registry:")) })
}

// defaultRegistries are those that commands of a configuration file may read if it names none.
var defaultRegistries = []string{"go", "npm", "pypi", "crates", "maven", "rubygems"}

func listedSetup(c config.Config) (s setup.Setup) {
	for i, command := range c.Setup.Commands {
		p := command.Proposal(fmt.Sprintf("setup-%d", i+1))
		if p.Network == nil {
			for _, name := range defaultRegistries {
				if c.Registries.Allow(name) {
					p.Network = append(p.Network, "registry:"+name)
				}
			}
		}
		s.Steps = append(s.Steps, setup.Step{Proposal: p})
	}
	return s
}

// Planned returns plan as Run and Check decide it: each proposal as a proposer's, whatever
// it says of itself, in the subject's directory, with Limits if it requests none; and before
// them the commands of Setup, whose ids do not repeat the plan's. Its services are started
// first, and again before each proposal that requests a new sandbox.
func (o Options) Planned(plan proposal.Plan) proposal.Plan {
	plan = proposed(InDirectory(plan, o.Subject.Cwd), o.Limits)
	taken, renamed := map[string]bool{}, map[string]string{}
	for _, p := range plan.Proposals {
		taken[p.ID] = true
	}
	all := o.services(taken, "")
	for _, step := range o.Setup.Steps {
		p := setupProposal(step)
		id := p.ID
		p.ID = unused(taken, p.ID)
		renamed[id] = p.ID
		p.Needs = slices.Clone(p.Needs)
		for i, need := range p.Needs {
			p.Needs[i] = renamed[need]
		}
		all = append(all, p)
	}
	for _, p := range plan.Proposals {
		if p.Fresh && len(all) > len(o.Setup.Services) {
			all = append(all, o.services(taken, "-"+p.ID)...)
		}
		all = append(all, p)
	}
	plan.Proposals = all
	return plan
}

// services returns the commands that start the services in a new sandbox.
func (o Options) services(taken map[string]bool, suffix string) []proposal.Proposal {
	list := slices.Clone(o.Setup.Services)
	for i := range list {
		list[i].ID, list[i].Fresh = unused(taken, list[i].ID+suffix), true
	}
	return list
}

// unused returns id, changed if it is taken, and takes it.
func unused(taken map[string]bool, id string) string {
	for taken[id] {
		id = "fumehood-" + id
	}
	taken[id] = true
	return id
}

// setupProposal returns a step as it is run. The end of an optional one does not matter.
func setupProposal(step setup.Step) proposal.Proposal {
	p := step.Proposal
	p.Origin = proposal.OriginSetup
	if step.Optional {
		p.Run, p.Argv = order.AnalyzeProposal(p).Canonical+" || true", nil
	}
	return p
}

// proposed returns plan as a proposer's, whatever it says of itself, with limits for the
// commands that request none.
func proposed(plan proposal.Plan, limits *proposal.Limits) proposal.Plan {
	plan.Proposals = slices.Clone(plan.Proposals)
	for i := range plan.Proposals {
		p := &plan.Proposals[i]
		if p.Origin = ""; p.Limits == nil {
			p.Limits = limits
		}
	}
	return plan
}

// setupPath returns the directories of the set-up inside the sandbox, in PATH's form.
func setupPath(s setup.Setup) string {
	var list []string
	for _, dir := range s.Path {
		list = append(list, filepath.Join(sandbox.Workspace, dir)+":")
	}
	return strings.Join(list, "")
}
