// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package parse

import (
	"maps"
	"os/exec"
	"slices"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/optiontext"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// differentWrapped are options of wrappers that a text shows otherwise than the wrapper reads them, and why.
var differentWrapped = map[string]string{
	"xargs --max-lines": "its help shows it beside -L, and xargs reads it as -l, with an optional value",
}

// The options of wrappers take as many words as the wrapper itself reads: what follows is the command.
func TestE2EWrapperOptionsAreThoseOfTheTools(t *testing.T) {
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(wrappers)) {
		if _, err := exec.LookPath(name); err != nil || name == "busybox" {
			t.Logf("%s is not installed, or has no options", name)
			continue
		}
		all, sources := optiontext.ReadTool(t, name)
		n := 0
		for _, option := range slices.Sorted(maps.Keys(all)) {
			args := []arg{staticArg(option), staticArg("next"), staticArg("command")}
			used := wrappers[name].readOption(args, map[string]arg{})
			if used == 0 {
				continue
			}
			n++
			if differentWrapped[name+" "+option] == "" && !slices.ContainsFunc(all[option], func(of optiontext.Shape) bool { return wordsOf(of) == used }) {
				t.Errorf("%s %s: its text has %q, and here it has %d values", name, option, all[option], used-1)
			}
		}
		t.Logf("%s: %d options, %d compared, from %q", name, len(all), n, sources)
		if compared++; n == 0 && name != "nohup" {
			t.Errorf("%s: nothing was compared", name)
		}
	}
	if compared < 10 {
		t.Errorf("only %d wrappers were compared", compared)
	}
}

// wordsOf is how many words an option with its value has, if the value is in a word of its own where
// it can be.
func wordsOf(of optiontext.Shape) int {
	switch of {
	case optiontext.Next, optiontext.Attached:
		return 2
	}
	return 1
}

func staticArg(text string) arg {
	return arg{Word: proposal.Word{Value: text, Static: true}}
}
