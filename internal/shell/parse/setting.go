// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"
)

func checkHash(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		if !a.Static || (a.Value != "-r" && strings.HasPrefix(a.Value, "-")) {
			w.addUnknown(unknownSetting, a.span)
			return
		}
	}
}

var setOptions = map[string]bool{
	"errexit": true, "nounset": true, "xtrace": true, "verbose": true, "pipefail": true, "noglob": true, "noclobber": true, "errtrace": true,
	"functrace": true, "noexec": true, "notify": true, "hashall": true, "monitor": true, "physical": true,
}

func checkSet(w *walker, _ int, args []arg, s scope, _ call) {
	for i := 1; i < len(args); i++ {
		a := args[i]
		if !a.Static && (a.Value == "" || a.Value[0] == '-' || a.Value[0] == '+') {
			w.addUnknown(unknownSetting, a.span)
			return
		}
		if a.Value == "--" || a.Value == "-" {
			w.recordPositional(args[i+1:])
			return
		}
		if len(a.Value) < 2 || (a.Value[0] != '-' && a.Value[0] != '+') {
			w.recordPositional(args[i:])
			return
		}
		letters := a.Value[1:]
		if a.Static && a.Value[0] == '-' && letters == "a" {
			w.addUnknown(unknownExportAll, a.span)
			continue
		}
		if !a.Static || strings.Trim(letters, "euxvfCETbhmPo") != "" || strings.Count(letters, "o") > 1 {
			w.addUnknown(unknownSetting, a.span)
			return
		}
		if strings.Contains(letters, "o") && i+1 < len(args) {
			i++
			if !args[i].Static || !setOptions[args[i].Value] {
				w.addUnknown(unknownSetting, args[i].span)
				return
			}
		}
	}
}

var shellOptions = map[string]bool{
	"globstar": true, "nullglob": true, "dotglob": true, "failglob": true, "nocaseglob": true, "nocasematch": true, "inherit_errexit": true,
	"lastpipe": true,
}

func checkShopt(w *walker, _ int, args []arg, _ scope, _ call) {
	for _, a := range args[1:] {
		option := a.Value == "-s" || a.Value == "-u" || a.Value == "-q" || a.Value == "-p"
		if !a.Static || !(option || shellOptions[a.Value]) {
			w.addUnknown(unknownSetting, a.span)
			return
		}
	}
}
