// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A List is a flag that may be repeated.
type List []string

// String implements pflag.Value.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set implements pflag.Value.
func (l *List) Set(value string) error { *l = append(*l, value); return nil }

// Type implements pflag.Value. The name is one that completion offers again.
func (l *List) Type() string { return "stringArray" }

// titled is the annotation that names a flag's group in help.
const titled = "fumehood-group"

// DefineGroup defines flags of cmd that help shows under a title of their own.
func DefineGroup(cmd *cobra.Command, title string, define func(*pflag.FlagSet)) {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	define(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[titled] = []string{title}
	})
	cmd.Flags().AddFlagSet(f)
}

// TitleOf returns the title of the group of a flag, or "".
func TitleOf(f *pflag.Flag) string { return strings.Join(f.Annotations[titled], "") }

// HideFlags removes flags from help and completion: they are for other programs.
func HideFlags(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.Lookup(name).Hidden = true
	}
}

// A Format is the form of a command's answer.
type Format struct {
	value string
	names []string
}

// The formats. Text is for people and may change in any release.
const (
	Text     = "text"
	JSON     = "json"
	Markdown = "markdown"
)

// Define adds --output and --json to cmd. The first format is the default.
func (o *Format) Define(cmd *cobra.Command, names ...string) {
	o.value, o.names = names[0], names
	f := cmd.Flags()
	f.VarP(o, "output", "o", "`FORMAT` print the answer as "+orList(names))
	j := f.VarPF((*jsonFlag)(o), "json", "", "same as --output json")
	j.NoOptDefVal = "true"
	CompleteValues(cmd, "output", names...)
}

// Is reports whether the answer has this format.
func (o *Format) Is(name string) bool { return o.value == name }

// String implements pflag.Value.
func (o *Format) String() string { return o.value }

// Type implements pflag.Value.
func (o *Format) Type() string { return "string" }

// Set implements pflag.Value.
func (o *Format) Set(value string) error {
	if !slices.Contains(o.names, value) {
		return fmt.Errorf("use %s", orList(o.names))
	}
	o.value = value
	return nil
}

// A jsonFlag is --json, the older spelling of --output json.
type jsonFlag Format

func (j *jsonFlag) String() string { return "false" }
func (j *jsonFlag) Type() string   { return "bool" }

func (j *jsonFlag) Set(value string) error {
	switch value {
	case "true", "1", "t", "T", "TRUE", "True":
		j.value = JSON
	case "false", "0", "f", "F", "FALSE", "False":
	default:
		return fmt.Errorf("use true or false")
	}
	return nil
}

// orList is names as a list in a sentence: "text, json or markdown".
func orList(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
