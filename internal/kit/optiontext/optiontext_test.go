// SPDX-License-Identifier: Apache-2.0

package optiontext

import (
	"maps"
	"slices"
	"testing"
)

func TestReadOptions(t *testing.T) {
	for text, want := range map[string]Options{
		"  -n, --lines=[-]NUM       print the first NUM lines":             {"-n": {Attached}, "--lines": {Attached}},
		"      --color[=WHEN], --colour[=WHEN]":                            {"--color": {Optional}, "--colour": {Optional}},
		"  -i[SUFFIX], --in-place[=SUFFIX]":                                {"-i": {Optional}, "--in-place": {Optional}},
		"  -w, --width[=BYTES]         output BYTES bytes per line":        {"-w": {LongOptional}, "--width": {Optional}},
		"  -c, -C NUM, --context[=NUM]   output NUM (default 3) lines":     {"-c": {LongOptional}, "-C": {Next}, "--context": {Optional}},
		"  -o OVERRIDE, --override-ini OVERRIDE":                           {"-o": {Next}, "--override-ini": {Next}},
		"  --debug [FILE]        store":                                    {"--debug": {Free}},
		"    -q, --[no-]quiet      be quiet":                               {"-q": {None}, "--quiet": {None}, "--no-quiet": {None}},
		"       -S<string>":                                                {"-S": {Attached}},
		"       --diff-merges=combined, --diff-merges=c, -c":               {"--diff-merges": {Attached}, "-c": {None}},
		"  --arg name value   set variable":                                {"--arg": {Two}},
		"  -s --output-separator=<string> String used to separate strings": {"-s": {Attached}, "--output-separator": {Attached}},
		"  -c|--call <call>":                                               {"-c": {Next}, "--call": {Next}},
		"  -e show all characters":                                         {},
		"  -a   do -b":                                                     {"-a": {None}},
		"-C dir\n\tChange to dir":                                          {"-C": {Next}},
		"  -v, --verbose...               Use verbose output (-vv very)":   {"-v": {None}, "--verbose": {None}},
		"           --color option. Set it to always":                      {},
		"plain text with -x in it":                                         {},
		"  -B[<n>][/<m>], --break-rewrites[=[<n>][/<m>]]":                  {"-B": {Optional}, "--break-rewrites": {Optional}},
	} {
		if got := ReadOptions(text); !maps.EqualFunc(got, want, slices.Equal[[]Shape]) {
			t.Errorf("%q is read as %v, want %v", text, got, want)
		}
	}
}
