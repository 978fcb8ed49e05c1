// SPDX-License-Identifier: Apache-2.0

// Package planning makes of a configuration, a workspace and a plan what is decided: which set-up the plan
// needs and where it comes, and each proposal as a proposer's, whatever it says of itself.
//
// The configuration must come from the maintainer, never from a pull request. Set-up is detected from
// the workspace's own files, which can be a pull request's: its commands are decided by policy like any
// other.
package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/gate/environment"
	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox/image/oci"
	"github.com/fumehood/fumehood/internal/sandbox/rootfs"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/config/devcontainer"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// A Request says what set-up is needed for.
type Request struct {
	Config    config.Config
	Workspace string
	Tools     string // directories of the host with tools, separated by colons
	Rootfs    string // as the operator says; "" and "host" are the configuration's
	Trusted   string // a checkout of what the maintainers merged, "" for none
}

// A Found is the root and the set-up of a run.
type Found struct {
	Rootfs string // no devcontainer.json
	Setup  setup.Setup
	// Image is the root if it is an image, nil for another root. It must be closed: see
	// environment.WithImage.
	Image *environment.Image
}

// FindRootAndSetup returns the root and the set-up that r requests. If the root is an image, it is opened, and pulled
// if necessary: set-up depends on the tools in it. Its error is a *proposal.StopError.
func FindRootAndSetup(ctx context.Context, r Request, notice func(string)) (f Found, err error) {
	f.Rootfs = r.Rootfs
	if r.Config.Rootfs != "" && (f.Rootfs == "" || f.Rootfs == "host") {
		f.Rootfs = r.Config.Rootfs
	}
	var d devcontainer.Config
	if devcontainer.Is(f.Rootfs) {
		if d, err = devcontainer.Read(f.Rootfs, r.Trusted); err != nil {
			return f, err
		}
		f.Rootfs = d.Image
	}
	if oci.Is(f.Rootfs) {
		if f.Image, err = environment.OpenImage(ctx, f.Rootfs, notice); err != nil {
			return f, err
		}
	}
	r.Config.Rootfs = f.Rootfs
	if f.Image != nil {
		f.Setup, err = FindSetupIn(f.Image.Root, r.Config, r.Workspace)
	} else {
		f.Setup, err = FindSetup(r.Config, r.Workspace, r.Tools)
	}
	addDevcontainer(&f.Setup, r.Config, d)
	if err != nil {
		err = errors.Join(err, f.Image.Close())
	}
	return f, err
}

// FindSetupIn is FindSetup with the tools that commands find in root.
func FindSetupIn(root rootfs.Root, c config.Config, workspace string) (setup.Setup, error) {
	s, err := findSteps(c, workspace, func(name string) (string, error) {
		if path := root.Lookup(name); path != "" {
			return path, nil
		}
		return "", exec.ErrNotFound
	})
	s.AddServices(c.Services, root.FS())
	return s, err
}

// FindSetup returns the set-up that c requests for the repository in workspace: what is detected there,
// c's commands, or nothing; and the services that c requests. A tool that is in none of the directories
// tools, separated by colons, is not used; of an image, which is not read, every tool is. The commands
// are decided by policy like any other; only in their phase, and only to this set-up, the default policy
// grants the registries that they request.
func FindSetup(c config.Config, workspace, tools string) (setup.Setup, error) {
	look, root := func(name string) (string, error) { return lookIn(tools, name) }, "/"
	if dir, ok := strings.CutPrefix(c.Rootfs, "dir:"); ok {
		root = dir
	}
	if oci.Is(c.Rootfs) || devcontainer.Is(c.Rootfs) {
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
		return setup.Setup{}, &proposal.StopError{Code: "sandbox.workspace",
			Message: fmt.Sprintf("cannot read the directory %q", workspace),
			Hint:    "name the directory that holds the pull request's code", Err: err}
	}
	defer root.Close()
	s := setup.Detector{LookPath: look}.Detect(root.FS())
	s.Always = c.Projects
	return onlyAllowed(c, s), nil
}

// onlyAllowed removes the steps whose first registry c does not list, and those that need such a step,
// with a note for each. Of the further registries, a step keeps those that c allows. Where c names
// registries that are read only if they are named, steps that read one read those, too.
func onlyAllowed(c config.Config, s setup.Setup) setup.Setup {
	left := map[string]bool{}
	for i, step := range s.Steps {
		if len(step.Network) == 0 || !isAllowed(c, step.Network[:1]) {
			continue
		}
		s.Steps[i].Network = slices.DeleteFunc(slices.Concat(step.Network, namedRegistries(c)),
			func(entry string) bool { return !isAllowed(c, []string{entry}) })
	}
	s.Steps = slices.DeleteFunc(s.Steps, func(step setup.Step) bool {
		left[step.ID] = !isAllowed(c, step.Network) ||
			slices.ContainsFunc(step.Needs, func(id string) bool { return left[id] })
		if left[step.ID] {
			file, _, _ := strings.Cut(step.Why, ": ")
			s.Notes = append(s.Notes, setup.Note{File: file,
				Text: fmt.Sprintf("left out: the configured registries do not allow %q",
					order.AnalyzeProposal(step.Proposal).Canonical)})
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

// isAllowed reports whether c lets set-up request all the entries.
func isAllowed(c config.Config, network []string) bool {
	return !slices.ContainsFunc(network,
		func(entry string) bool { return !c.Registries.Allow(strings.TrimPrefix(entry, "registry:")) })
}

// defaultRegistries are those that commands of a configuration file may read if it names none.
var defaultRegistries = policies.RegistryNames(func(r policies.Registry) bool { return r.Setup == "found" })

// namedRegistries returns the entries of the registries that c has to name, and names.
func namedRegistries(c config.Config) (entries []string) {
	for _, name := range policies.RegistryNames(func(r policies.Registry) bool { return r.Setup == "named" }) {
		if c.Registries.Listed && c.Registries.Allow(name) {
			entries = append(entries, "registry:"+name)
		}
	}
	return entries
}

func listedSetup(c config.Config) (s setup.Setup) {
	for i, command := range c.Setup.Commands {
		p := command.Proposal(fmt.Sprintf("setup-%d", i+1))
		if p.Network == nil {
			for _, name := range defaultRegistries {
				if c.Registries.Allow(name) {
					p.Network = append(p.Network, "registry:"+name)
				}
			}
			p.Network = append(p.Network, namedRegistries(c)...)
		}
		s.Steps = append(s.Steps, setup.Step{Proposal: p})
	}
	return s
}
