// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/fumehood/fumehood/internal/gate/planning"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/config/devcontainer"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// noConfig is the name of no configuration file: see config.ReadFile.
const noConfig = "none"

// A baseConfig is the configuration of the base repository.
type baseConfig struct {
	file   string // runspec.Spec.Config
	config config.Config
	rootfs string // runspec.Spec.Rootfs
	err    error
}

// configuration returns the configuration of the default branch, never the pull request's or
// that of its base branch. A file that is there and cannot be read is an error, so that what
// it forbids is not done.
func (b *Base) configuration(ctx context.Context) (baseConfig, error) {
	if b.configured == nil {
		c := b.readConfiguration(ctx)
		b.configured = &c
	}
	return *b.configured, b.configured.err
}

func (b *Base) readConfiguration(ctx context.Context) (c baseConfig) {
	if err := b.fetchPolicy(ctx); err != nil {
		return baseConfig{err: err}
	}
	dir := filepath.Join(b.job.dir, "config")
	tree, err := b.store.WriteUnder(ctx, b.tips[0].SHA, path.Dir(config.Path), dir)
	var absent *checkout.NotFound
	if errors.As(err, &absent) {
		tree, err = checkout.Tree{}, nil
	}
	if err != nil {
		return baseConfig{err: err}
	}
	if c.file, c.err = configIn(dir, tree); c.err != nil {
		return c
	}
	override := config.Override{Field: "setup", From: "input setup"}
	if mode := b.job.in.Setup; mode != action.SetupConfigured {
		override.Value = mode
	}
	found, err := config.ReadFile(c.file, "", override)
	c.config, c.err = found.Config, err
	b.job.configuredPolicy = found.Config.Policy
	if c.err == nil {
		c.rootfs, c.err = b.rootfs(ctx, found.Config)
	}
	c.config.Rootfs = c.rootfs
	return c
}

// rootfs returns the root file system that the workflow or the configuration chooses. A
// devcontainer.json is the default branch's, never the pull request's.
func (b *Base) rootfs(ctx context.Context, c config.Config) (string, error) {
	value := b.job.in.Rootfs
	if value == "host" && c.Rootfs != "" {
		value = c.Rootfs
	}
	if value != devcontainer.Name {
		return value, nil
	}
	dir := filepath.Join(b.job.dir, "devcontainer")
	_, err := b.store.WriteUnder(ctx, b.tips[0].SHA, path.Dir(devcontainer.Paths[0]), dir)
	var absent *checkout.NotFound
	if err != nil && !errors.As(err, &absent) {
		return "", err
	}
	file := filepath.Join(dir, path.Base(devcontainer.Paths[0]))
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return "", &proposal.StopError{Code: "rootfs.devcontainer",
			Message: "the default branch has no " + devcontainer.Paths[0],
			Hint:    "add the file, or choose another rootfs"}
	}
	return devcontainer.Prefix + file, nil
}

// comment is what the configuration says about the comment, if it was read.
func (b *Base) comment() config.Comment {
	if b.configured == nil {
		return config.Comment{}
	}
	return b.configured.config.Comment
}

// configIn returns the configuration file in dir, which holds tree.
func configIn(dir string, tree checkout.Tree) (string, error) {
	name := path.Base(config.Path)
	file := filepath.Join(dir, name)
	info, err := os.Lstat(file)
	left := slices.ContainsFunc(tree.Left, func(l checkout.Left) bool { return l.Path == name })
	switch {
	case errors.Is(err, os.ErrNotExist) && !left:
		return noConfig, nil
	case err != nil || left || !info.Mode().IsRegular():
		return "", &proposal.StopError{Code: "config.unreadable",
			Message: config.Path + " of the default branch is not a regular file",
			Hint:    "make it a regular file, or remove it"}
	}
	return file, nil
}

// reportedSetup returns the set-up that a report on this configuration may have: what the
// configuration lists, or nothing. Where it is detected, which needs the pull request's
// code, it is what the report says: policy decides it again like every proposal.
func (c baseConfig) reportedSetup(r proposal.Report) (s setup.Setup, err error) {
	requested := c.config.Services
	c.config.Services = nil // found on the run's host
	if c.config.Setup.Mode != config.Auto {
		s, err = planning.FindSetup(c.config, "", "")
	}
	var services []string
	for _, record := range r.Records {
		switch p := record.Proposal; {
		case p.Origin == proposal.OriginService:
			services = append(services, p.Run)
		case p.Origin == proposal.OriginSetup && c.config.Setup.Mode == config.Auto:
			s.Steps = append(s.Steps, setup.Step{Proposal: p, Detected: p.Why != devcontainer.Why})
		}
	}
	s.AddReportedServices(requested, services)
	return s, err
}
