// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// A View is the configuration in force, for people and as JSON.
type View struct {
	Digest string       `json:"digest,omitempty"` // of the file
	Values []shownValue `json:"values"`
	Setup  shownSetup   `json:"setup"`
	// All prints the values that are the default, too.
	All bool `json:"-"`
}

type shownValue struct {
	Field string          `json:"field"`
	Value json.RawMessage `json:"value"` // null if nothing is set
	From  string          `json:"from"`
	text  string
	unset bool
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

// InForce returns the view of a configuration and of all set-up that was found for it: the commands
// for a command that may use everything, and in notes what is left out.
func InForce(found config.Effective, all setup.Setup) View {
	s := all.ChoosePart(setup.Everything)
	s.Notes = append(s.Notes, all.ListLeftOut(s)...)
	v := View{Values: []shownValue{}, Setup: shownSetup{
		Commands: []shownCommand{}, Registries: append([]string{}, s.Registries()...), Env: map[string]string{},
		Path: append([]string{}, s.Path...), Notes: []shownNote{},
	}}
	if found.Config.Schema != "" {
		v.Digest = found.Config.Digest
	}
	for _, value := range found.Values {
		shown := shownValue{Field: value.Field, From: value.Source.String(), text: value.Text,
			unset: value.Source.Name == ""}
		if value.Field == "setup" && found.Config.Setup.Mode == config.Listed {
			shown.text = "(commands below)"
		}
		if n, err := strconv.ParseInt(value.Text, 10, 64); err == nil &&
			slices.Contains([]string{"limits.memory", "limits.disk", "limits.output"}, value.Field) {
			shown.text = proposal.Bytes(n).String()
		}
		if json.Valid([]byte(value.Text)) {
			shown.Value = json.RawMessage(value.Text)
		}
		v.Values = append(v.Values, shown)
	}
	steps := []setup.Step{}
	for _, p := range s.Services {
		steps = append(steps, setup.Step{Proposal: p})
	}
	for _, step := range append(steps, s.Steps...) {
		v.Setup.Commands = append(v.Setup.Commands, shownCommand{
			ID: step.ID, Run: step.Run, Argv: step.Argv, Cwd: step.Cwd, Env: step.Env,
			Network: append([]string{}, step.Network...),
			Timeout: step.Timeout, Why: step.Why, Optional: step.Optional, line: FormatCommand(step.Proposal),
		})
	}
	maps.Copy(v.Setup.Env, s.Env)
	for _, n := range s.Notes {
		v.Setup.Notes = append(v.Setup.Notes, shownNote{n.File, n.Text, n.String()})
	}
	return v
}

// Print writes v as text. Its error is that of w.
func (v View) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defaults := 0
	for _, value := range v.Values {
		if value.unset && !v.All {
			defaults++
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", value.Field, terminal.EscapeLine(value.text),
			terminal.EscapeLine(value.From))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	if defaults > 0 {
		fmt.Fprintf(&b, "%d settings have the default: see fumehood config --all\n", defaults)
	}
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
		fmt.Fprintf(&b, "  %s: %s\n    %s\n", terminal.EscapeLine(command.ID), command.line,
			terminal.EscapeLine(strings.Join(about, "; ")))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Setup.Env)) {
		fmt.Fprintf(&b, "  %s=%s\n", name, terminal.QuoteWord(v.Setup.Env[name]))
	}
	for _, dir := range v.Setup.Path {
		fmt.Fprintf(&b, "  %s is first in PATH\n", terminal.QuoteWord(path.Join(sandbox.Workspace, dir)))
	}
	for _, n := range v.Setup.Notes {
		fmt.Fprintf(&b, "  note: %s\n", terminal.EscapeLine(n.line))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
