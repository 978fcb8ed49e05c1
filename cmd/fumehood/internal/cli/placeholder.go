// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// A named value is a flag's value that help shows as a name: FILE.
type named struct {
	pflag.Value
	name, def string
}

// Type implements pflag.Value. Help shows it.
func (n named) Type() string { return n.name }

// A namedList is a named value that may be repeated, which completion asks for.
type namedList struct {
	named
	list *List
}

// GetSlice marks a flag that may be repeated, for completion.
func (n namedList) GetSlice() []string { return *n.list }

// takeValueName takes a name in backquotes from the start of the flag's usage, where pflag would
// repeat it: "`FILE` write the report to it".
func takeValueName(f *pflag.Flag) {
	if !strings.HasPrefix(f.Usage, "`") {
		return
	}
	name, usage, _ := strings.Cut(f.Usage[1:], "` ")
	f.Usage = usage
	value := named{f.Value, name, f.DefValue}
	if list, ok := f.Value.(*List); ok {
		f.Value = namedList{value, list}
		return
	}
	f.Value = value
	if f.DefValue == "0s" || f.DefValue == "0" { // which is not worth printing
		f.DefValue = ""
	}
}
