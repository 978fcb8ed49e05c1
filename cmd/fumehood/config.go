// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fumehood/fumehood/pkg/cli"
	"github.com/fumehood/fumehood/pkg/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/setup"
	"github.com/fumehood/fumehood/pkg/starter"
	"github.com/fumehood/fumehood/pkg/terminal"
)

// configFlags are the flags of config.
type configFlags struct {
	file, setup string
	format      cli.Format
}

func (c *invocation) configCommand() *cobra.Command {
	var s configFlags
	cmd := &cobra.Command{
		Use:     "config [DIR] [flags]",
		GroupID: groupSetup,
		Short:   "Show the configuration in force and where each value comes from",
		Long: `Show the configuration in force for the repository in DIR, the current directory by default:
each value with its source (the default, a line of the file, or a flag), and the set-up
commands that fumehood run would put before the plan's. Nothing runs. Policy still decides
each command.`,
		Example: `  fumehood config
  fumehood config ~/src/project --json
  fumehood config --config other.yml --setup none`,
		RunE:              c.Run(func(args []string) int { return c.showConfig(&s, args) }),
		ValidArgsFunction: oneDirectory,
	}
	f := cmd.Flags()
	f.StringVar(&s.file, "config", "", "`FILE` configuration, or none (default: .github/fumehood.yml of DIR, if it is there)")
	f.StringVar(&s.setup, "setup", "", "`MODE` auto or none, instead of the configured set-up")
	s.format.Define(cmd, cli.Text, cli.JSON, cli.Markdown)
	cli.Values(cmd, "setup", "auto", "none")
	return cmd
}

func (c *invocation) showConfig(s *configFlags, args []string) int {
	if len(args) > 1 {
		return c.Misuse("config takes one directory")
	}
	if s.setup != "" && s.setup != "auto" && s.setup != "none" {
		return c.Misuse("--setup must be auto or none")
	}
	dir := append(args, ".")[0]
	found, err := gate.ReadConfig(s.file, dir, config.Override{Field: "setup", Value: s.setup, From: "--setup"})
	if err != nil {
		return c.Stop(err)
	}
	before, err := gate.FindSetup(found.Config, dir, os.Getenv("PATH"))
	if err != nil {
		return c.Stop(err)
	}
	if before.Notes, err = leftOut(found.Config, dir, before); err != nil {
		return c.Stop(err)
	}
	// A setting that this version refuses is shown with the others.
	if err := (&gate.Options{Workspace: dir, Tools: os.Getenv("PATH")}).Configure(found.Config); err != nil {
		var stop *proposal.StopError
		if !errors.As(err, &stop) || stop.Code != "config.unsupported" {
			return c.Stop(err)
		}
		c.WarnOf(err)
	}
	shown := configView(found, before)
	return c.Exit(exitOK, c.Answer(s.format, func() error { return c.PrintJSON(json.Marshal(shown)) }, shown.print))
}

// leftOut returns the notes of s, and one for each command that the configured registries
// exclude from it.
func leftOut(found config.Config, dir string, s setup.Setup) ([]setup.Note, error) {
	if found.Setup.Mode != config.Auto || !found.Registries.Listed {
		return s.Notes, nil
	}
	found.Registries = config.Registries{}
	all, err := gate.FindSetup(found, dir, os.Getenv("PATH"))
	notes := s.Notes
	for _, step := range all.Steps {
		if !slices.ContainsFunc(s.Steps, func(kept setup.Step) bool { return kept.ID == step.ID }) {
			file, _, _ := strings.Cut(step.Why, ": ")
			notes = append(notes, setup.Note{File: file, Text: fmt.Sprintf("left out: registries does not list %s, which %q needs", strings.Join(step.Network, ", "), starter.Command(step.Proposal))})
		}
	}
	return notes, err
}

// A shownConfig is what config prints.
type shownConfig struct {
	Digest string       `json:"digest,omitempty"` // of the file
	Values []shownValue `json:"values"`
	Setup  shownSetup   `json:"setup"`
}

type shownValue struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value"` // null if nothing is set
	From  string          `json:"from"`
	text  string
}

type shownSetup struct {
	Commands   []shownCommand    `json:"commands"`
	Registries []string          `json:"registries"`
	Env        map[string]string `json:"env"`
	Path       []string          `json:"path"`
	Notes      []shownNote       `json:"notes"`
}

type shownCommand struct {
	ID       string            `json:"id"`
	Run      string            `json:"run,omitempty"`
	Argv     []string          `json:"argv,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Network  []string          `json:"network"`
	Timeout  proposal.Duration `json:"timeout,omitempty"`
	Why      string            `json:"why"`
	Optional bool              `json:"optional"`
	line     string
}

type shownNote struct {
	File string `json:"file"`
	Text string `json:"text"`
	line string
}

func configView(found config.Effective, s setup.Setup) shownConfig {
	v := shownConfig{Values: []shownValue{}, Setup: shownSetup{
		Commands: []shownCommand{}, Registries: append([]string{}, s.Registries()...), Env: map[string]string{}, Path: append([]string{}, s.Path...), Notes: []shownNote{},
	}}
	if found.Config.Schema != "" {
		v.Digest = found.Config.Digest
	}
	for _, value := range found.Values {
		shown := shownValue{Field: value.Field, From: value.Source.String(), text: value.Text}
		if value.Field == "setup" && found.Config.Setup.Mode == config.Listed {
			shown.text = "(commands below)"
		}
		if n, err := strconv.ParseInt(value.Text, 10, 64); err == nil && slices.Contains([]string{"limits.memory", "limits.disk", "limits.output"}, value.Field) {
			shown.text = proposal.Bytes(n).String()
		}
		if json.Valid([]byte(value.Text)) {
			shown.Value = json.RawMessage(value.Text)
		}
		v.Values = append(v.Values, shown)
	}
	for _, step := range s.Steps {
		v.Setup.Commands = append(v.Setup.Commands, shownCommand{
			ID: step.ID, Run: step.Run, Argv: step.Argv, Cwd: step.Cwd, Env: step.Env, Network: append([]string{}, step.Network...),
			Timeout: step.Timeout, Why: step.Why, Optional: step.Optional, line: starter.Command(step.Proposal),
		})
	}
	maps.Copy(v.Setup.Env, s.Env)
	for _, n := range s.Notes {
		v.Setup.Notes = append(v.Setup.Notes, shownNote{n.File, n.Text, n.String()})
	}
	return v
}

// print writes v as text.
func (v shownConfig) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, value := range v.Values {
		fmt.Fprintf(table, "%s\t%s\t%s\n", value.Field, terminal.Line(value.text), terminal.Line(value.From))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\nset-up commands:\n")
	if len(v.Setup.Commands) == 0 {
		b.WriteString("  none\n")
	}
	for _, command := range v.Setup.Commands {
		about := []string{command.Why, "no network"}
		if len(command.Network) > 0 {
			about[1] = strings.Join(command.Network, ", ")
		}
		if command.Optional {
			about = append(about, "failure is ignored")
		}
		fmt.Fprintf(&b, "  %s: %s\n    %s\n", terminal.Line(command.ID), command.line, terminal.Line(strings.Join(about, "; ")))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Setup.Env)) {
		fmt.Fprintf(&b, "  %s=%s\n", name, terminal.Word(v.Setup.Env[name]))
	}
	for _, dir := range v.Setup.Path {
		fmt.Fprintf(&b, "  %s is first in PATH\n", terminal.Word(path.Join("/workspace", dir)))
	}
	for _, n := range v.Setup.Notes {
		fmt.Fprintf(&b, "  note: %s\n", terminal.Line(n.line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
