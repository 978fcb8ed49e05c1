// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/internal/kit/terminal"
)

// The groups of commands in help.
const (
	GroupRun      = "run"
	GroupPolicy   = "policy"
	GroupEvidence = "evidence"
	GroupSetup    = "setup"
)

// Execute runs the command that args name below root and returns its exit code.
func (c *Invocation) Execute(root *cobra.Command, args []string) int {
	c.prepareCommands(root)
	c.args = args
	root.SetArgs(args)
	return c.RunWatched(func() int {
		root.SetOut(c.Stdout)
		cmd, err := root.ExecuteContextC(c.Ctx)
		if err != nil {
			c.Name = nameOf(cmd)
			return c.reportFlagError(cmd, err)
		}
		return c.code
	})
}

func firstArg(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// prepareCommands sets what all commands below root have in common.
func (c *Invocation) prepareCommands(root *cobra.Command) {
	root.SetIn(c.Stdin)
	root.SetErr(c.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	cobra.EnableCommandSorting = false
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), HelpText(cmd)) })
	root.SetHelpCommand(c.newHelpCommand(root))
	walkCommands(root, func(cmd *cobra.Command) {
		cmd.DisableFlagsInUseLine = true
		cmd.Flags().SortFlags = false
		cmd.InitDefaultHelpFlag()
		cmd.Flags().Lookup("help").Usage = "print this help"
		cmd.Flags().VisitAll(takeValueName)
		if cmd.HasSubCommands() && cmd.RunE == nil {
			c.setGroupRun(cmd)
		}
	})
}

func walkCommands(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		walkCommands(sub, do)
	}
}

// nameOf returns the command without the program's name: "policy check".
func nameOf(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}

// Run makes a command of do, which returns the exit code.
func (c *Invocation) Run(do func(args []string) int) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c.Name = nameOf(cmd)
		c.code = do(args)
		return nil
	}
}

// setGroupRun makes cmd print its help, or say which of its commands was misspelled.
func (c *Invocation) setGroupRun(cmd *cobra.Command) {
	cmd.FParseErrWhitelist.UnknownFlags = true // the unknown command is the mistake to report
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = c.Run(func(args []string) int {
		switch {
		case firstArg(args) == "help": // fumehood policy help check
			return c.printHelp(cmd, args[1:])
		case len(args) > 0:
			return c.unknownCommand(cmd, args[0])
		}
		if depth := len(strings.Fields(c.Name)); len(c.args) > depth {
			name := strings.TrimLeft(c.args[depth], "-")
			return c.reportMisuse("unknown flag "+terminal.EscapeLine(c.args[depth]),
				dashedName(nearestName(name, flagNames(cmd))))
		}
		fmt.Fprint(c.Stderr, HelpText(cmd))
		return Usage
	})
}

// newHelpCommand is the command that prints the help of others: fumehood help policy check.
func (c *Invocation) newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return commandNames(findCommand(root, args)), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: c.Run(func(args []string) int { return c.printHelp(root, args) }),
	}
}

func (c *Invocation) printHelp(root *cobra.Command, args []string) int {
	cmd := findCommand(root, args)
	if depth := len(strings.Fields(nameOf(cmd))) - len(strings.Fields(nameOf(root))); depth < len(args) &&
		cmd.HasSubCommands() {
		return c.unknownCommand(cmd, args[depth])
	}
	fmt.Fprint(c.Stdout, HelpText(cmd))
	return OK
}

// findCommand returns the command that the first of args name.
func findCommand(root *cobra.Command, args []string) *cobra.Command {
	for _, name := range args {
		i := slices.IndexFunc(root.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name })
		if i < 0 {
			return root
		}
		root = root.Commands()[i]
	}
	return root
}

// commandNames lists the commands of a group that its help shows.
func commandNames(group *cobra.Command) (names []string) {
	for _, sub := range group.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// insteadOf begins the annotation of a group that names the command to suggest for a name.
const insteadOf = "fumehood-instead-of "

// SuggestInstead makes cmd, which has no command name, suggest another command line to a user who types it.
func SuggestInstead(cmd *cobra.Command, name, instead string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[insteadOf+name] = instead
}

func (c *Invocation) unknownCommand(group *cobra.Command, name string) int {
	c.Name = nameOf(group)
	full := strings.TrimSpace(c.Name + " " + name)
	meant := cmp.Or(group.Annotations[insteadOf+name], nearestName(name, commandNames(group)))
	return c.reportMisuse(fmt.Sprintf("unknown command \"%s\"", terminal.EscapeLine(full)), meant)
}

// reportMisuse is ReportMisuse with the name that was probably meant, or "".
func (c *Invocation) reportMisuse(message, meant string) int {
	hint := "see " + c.helpCommand()
	if meant != "" {
		hint = "did you mean " + meant + "? See " + c.helpCommand()
	}
	c.PrintNotes(message, "hint: "+hint)
	return Usage
}

// reportFlagError prints what cobra or pflag found wrong with the command line.
func (c *Invocation) reportFlagError(cmd *cobra.Command, err error) int {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return c.unknownFlag(cmd, unknown)
	}
	if name := cmd.Flags().Arg(0); cmd.Annotations[insteadOf+name] != "" {
		return c.unknownCommand(cmd, name)
	}
	return c.ReportMisuse(terminal.EscapeLine(describeFlagError(err)))
}

func (c *Invocation) unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) int {
	name := err.GetSpecifiedName()
	if err.GetSpecifiedShortnames() != "" {
		return c.reportMisuse("unknown flag -"+terminal.EscapeLine(err.GetSpecifiedShortnames()),
			dashedName(nearestName(err.GetSpecifiedShortnames(), flagNames(cmd))))
	}
	return c.reportMisuse("unknown flag --"+terminal.EscapeLine(name), dashedName(nearestName(name, flagNames(cmd))))
}

func dashedName(name string) string {
	if name == "" {
		return ""
	}
	return "--" + name
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// describeFlagError returns the error of a flag in fumehood's words.
func describeFlagError(err error) string {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &invalid):
		return fmt.Sprintf("invalid value %q for --%s: %v", invalid.GetValue(), invalid.GetFlag().Name,
			invalid.Unwrap())
	case errors.As(err, &missing):
		return fmt.Sprintf("--%s needs a value", missing.GetFlag().Name)
	}
	return err.Error()
}

// TextFirst makes cmd read no flags after its first argument: they belong to a command
// line that it is about.
func TextFirst(cmd *cobra.Command) { cmd.Flags().SetInterspersed(false) }

// IsFlag reports whether arg is a flag of cmd: --name, --name=value, -n or -n=value.
func IsFlag(cmd *cobra.Command, arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	if long, ok := strings.CutPrefix(name, "--"); ok {
		return long != "" && cmd.Flags().Lookup(long) != nil
	}
	return len(name) == 2 && name[0] == '-' && cmd.Flags().ShorthandLookup(name[1:]) != nil
}

// ParseMore parses flags that follow a first argument. If it returns false, the command ends
// with this exit code.
func (c *Invocation) ParseMore(cmd *cobra.Command, args []string) ([]string, int, bool) {
	f := cmd.Flags()
	f.SetInterspersed(true)
	if err := f.Parse(args); err != nil {
		return nil, c.reportFlagError(cmd, err), false
	}
	if f.Changed("help") {
		fmt.Fprint(c.Stdout, HelpText(cmd))
		return nil, OK, false
	}
	return f.Args(), OK, true
}
