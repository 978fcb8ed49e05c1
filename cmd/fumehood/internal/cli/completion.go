// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteValues makes shells complete a flag with these values.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	registerCompletion(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteDirectories makes shells complete flags with names of directories.
func CompleteDirectories(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		registerCompletion(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		})
	}
}

// NoFiles keeps shells from completing flags with names of files, which their values are not.
func NoFiles(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		registerCompletion(cmd, flag, cobra.NoFileCompletions)
	}
}

func registerCompletion(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic("cli: internal error: " + err.Error())
	}
}

// withoutPackage replaces what cobra's script uses of the package bash-completion, if the
// package is not installed. bash splits words at = and :, which are joined again.
const withoutPackage = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    __fumehood_init_completion() {
        local i word
        words=("${COMP_WORDS[0]}")
        for ((i = 1; i <= COMP_CWORD; i++)); do
            word=${COMP_WORDS[i]}
            if [[ $word == [=:] || ${words[-1]} == *[=:] && $i -gt 1 ]]; then
                words[-1]+=$word
            else
                words+=("$word")
            fi
        done
        cword=$((${#words[@]} - 1)) cur=${words[-1]} prev=${words[cword - 1]}
    }
fi
if ! declare -F _filedir >/dev/null; then
    _filedir() {
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        compopt -o filenames 2>/dev/null
    }
fi
`

// Shells are those that WriteCompletion knows.
var Shells = []string{"bash", "zsh", "fish"}

// WriteCompletion writes the script with which a shell completes the commands below root.
func WriteCompletion(w io.Writer, root *cobra.Command, shell string) error {
	switch shell {
	case "bash":
		if err := root.GenBashCompletionV2(w, true); err != nil {
			return err
		}
		_, err := io.WriteString(w, withoutPackage)
		return err
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	}
	return fmt.Errorf("unsupported shell %q: use %s", shell, orList(Shells))
}

// NoArgs refuses all arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, but got %q", nameOf(cmd), args[0])
	}
	return nil
}

// RequireArgs requires n arguments, which what names: "a log".
func RequireArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s needs %s", nameOf(cmd), what)
		}
		return nil
	}
}

// SomeArgs requires at least one argument, which what names.
func SomeArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s", nameOf(cmd), what)
		}
		return nil
	}
}

// CompleteFirstFile completes only the first argument with names of files.
func CompleteFirstFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// indentLines is two spaces before each line.
func indentLines(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
