// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/kit/golden"
)

// prepared returns the tree of commands as help shows it.
func prepared(t *testing.T) *cobra.Command {
	t.Helper()
	c := &invocation{cli.Invocation{Ctx: context.Background(), Stdout: io.Discard, Stderr: io.Discard}}
	root := c.rootCommand()
	if code := c.Execute(root, []string{"help"}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	return root
}

func each(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, do)
	}
}

// docs/COMMANDS.md is what the commands' help says.
func TestReference(t *testing.T) {
	const page = "../../docs/COMMANDS.md"
	got := commandsPage(prepared(t))
	if *golden.Update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/COMMANDS.md is out of date: go test ./cmd/fumehood -run TestReference -update\n%s", diff)
	}
}

// commandsPage returns the help of root and all commands below it as one page of Markdown. A flag, or a group of flags, that
// several commands share is printed for the first one, to which the others link.
func commandsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nThe help of every command, by `fumehood COMMAND --help`. What several commands share is printed for the first one, and the others link\n" +
		"to it. Every command has `" + helpFlag + "`. [ERRORS.md](ERRORS.md) has the codes in front of error messages.\n")
	first := map[string]string{} // the first command of each group and flag
	each(root, func(cmd *cobra.Command) {
		if cmd == root || cmd.IsAvailableCommand() && cmd.Name() != "help" {
			b.WriteString(describeInMarkdown(cmd, first))
		}
	})
	return b.String()
}

const helpFlag = "-h, --help"

// flagHelp is a flag in help: what is typed for it, and what it does.
var flagHelp = regexp.MustCompile(`(?m)^  (?:    )?((?:-\w, )?--.*?)(?: {3,}|\n {8,})(.*\n(?: {8,}.*\n)*)`)

func describeInMarkdown(cmd *cobra.Command, first map[string]string) string {
	path := cmd.CommandPath()
	var sections, owners []string
	shared := map[string][]string{} // what it shares, by the first command that has it
	isShared := func(key, label string) bool {
		owner := cmp.Or(first[key], path)
		first[key] = owner
		if owner == path {
			return false
		}
		if shared[owner] == nil {
			owners = append(owners, owner)
		}
		shared[owner] = append(shared[owner], label)
		return true
	}
	for section := range strings.SplitSeq(strings.TrimRight(cli.HelpText(cmd), "\n"), "\n\n") {
		title, _, _ := strings.Cut(section, ":\n")
		section += "\n"
		switch {
		case title == "Flags":
			section = flagHelp.ReplaceAllStringFunc(section, func(flag string) string {
				found := flagHelp.FindStringSubmatch(flag)
				if found[1] == helpFlag || isShared(strings.Join(strings.Fields(flag), " "), "`"+found[1]+"`") {
					return ""
				}
				return flag
			})
			if section == "Flags:\n" {
				continue
			}
		case strings.HasSuffix(title, " flags") && isShared(section, title):
			continue
		}
		sections = append(sections, section)
	}
	text := "\n## " + path + "\n\n```text\n" + strings.Join(sections, "\n") + "```\n"
	for i, owner := range owners {
		text += []string{"\nAs ", ";\nas "}[min(i, 1)] + "[" + owner + "](#" + strings.ReplaceAll(owner, " ", "-") + "): " + strings.Join(shared[owner], ", ")
	}
	if len(owners) > 0 {
		text += ".\n"
	}
	return text
}

// Every command has a short text and an example, every flag a usage, and neither depends on
// this machine.
func TestHelpTexts(t *testing.T) {
	home, _ := os.UserHomeDir()
	each(prepared(t), func(cmd *cobra.Command) {
		help := cli.HelpText(cmd)
		if cmd.Short == "" || !strings.Contains("ABCDEFGHIJKLMNOPQRSTUVWXYZ", cmd.Short[:1]) || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: invalid short text %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Example == "" && cmd.Name() != "help" && cmd.Name() != "version" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, local := range []string{os.Getenv("PATH"), home} {
			if strings.Contains(help, local) {
				t.Errorf("the help of %s has %q of this machine", cmd.CommandPath(), local)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { checkFlag(t, cmd, f) })
	})
}

func checkFlag(t *testing.T, cmd *cobra.Command, f *pflag.Flag) {
	t.Helper()
	if f.Usage == "" {
		t.Errorf("%s --%s has no usage", cmd.CommandPath(), f.Name)
	}
	if name, _ := pflag.UnquoteUsage(f); f.NoOptDefVal == "" && name != strings.ToUpper(name) {
		t.Errorf("%s --%s has the placeholder %q", cmd.CommandPath(), f.Name, name)
	}
}

// Every command has a page of the manual, in which each of its flags is.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if code := runCommandLine(t.Context(), []string{"man", dir}, strings.NewReader(""), io.Discard, os.Stderr); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "fumehood*.1"))
	if err != nil || len(pages) < 25 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	macro := regexp.MustCompile(`(?m)^['.](TH|SH|TP|nf|fi)( |$)`)
	each(prepared(t), func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		page := jobtest.ReadFile(t, filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if begun := regexp.MustCompile(`(?m)^['.]`).FindAllIndex(page, -1); len(begun) != len(macro.FindAllIndex(page, -1)) {
			t.Errorf("%s: text that reads as a macro", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if shown := bytes.Contains(page, []byte(strings.ReplaceAll("--"+f.Name, "-", `\-`)+`\fR`)); shown == f.Hidden {
				t.Errorf("%s: --%s is shown: %t", cmd.CommandPath(), f.Name, shown)
			}
		})
	})
}

// flagValue matches a flag and the default that a page states for it: "`--idle` (15 minutes)".
var flagValue = regexp.MustCompile("`--([a-z-]+)`\\s+\\(([0-9]+) ?(s|m|h|minutes|hours)?\\)")

// A default of a flag on a page is that of a command with this flag. Where a command has none, it takes the value from
// elsewhere: TestFiguresOfPages of pkg compares such ones with the code.
func TestDefaultsOfFlags(t *testing.T) {
	defaults := map[string][]string{}
	each(prepared(t), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { defaults[f.Name] = append(defaults[f.Name], f.DefValue) })
	})
	pages, err := filepath.Glob("../../docs/*.md")
	more, errMore := filepath.Glob("../../docs/*/*.md")
	if err != nil || errMore != nil {
		t.Fatal(err, errMore)
	}
	found := 0
	for _, page := range append(pages, more...) {
		for _, m := range flagValue.FindAllStringSubmatch(string(jobtest.ReadFile(t, page)), -1) {
			if slices.Contains(defaults[m[1]], "") {
				continue
			}
			found++
			want := m[2]
			if m[3] != "" {
				d, err := time.ParseDuration(m[2] + m[3][:1])
				if err != nil {
					t.Fatal(err)
				}
				want = d.String()
			}
			if !slices.Contains(defaults[m[1]], want) {
				t.Errorf("%s says %s, and the defaults of --%s are %q", page, m[0], m[1], defaults[m[1]])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d defaults of flags", found)
	}
}
