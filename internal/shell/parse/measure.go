// SPDX-License-Identifier: Apache-2.0

package parse

import "slices"

var perfStat = wrapper{flags: "aABcdinSTv", values: "eIMorx", long: []string{
	"detailed", "event=", "interval-print=", "metrics=", "null", "output=", "append", "repeat=", "verbose", "field-separator=", "no-big-num", "per-core", "per-socket"}}

// followPerf follows perf stat. Other subcommands are left to policy.
func followPerf(w *walker, _ int, args []arg, s scope, c call) {
	if len(args) == 1 || args[1].Value != "stat" {
		if len(args) > 1 && !asksAbout(args[1:]) {
			w.addUnknown(unknownWrapped, args[0].span)
		}
		return
	}
	rest, _, ok := w.skipWrapper(perfStat, args[2:])
	if !ok {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.recordCommand(rest, s.inWrapper("perf stat"), c)
	}
}

// hyperfineValues are hyperfine's options that take a value. The value of those in
// hyperfineScripts is a command, as its operands are.
var (
	hyperfineScripts = []string{"-s", "--setup", "-p", "--prepare", "-C", "--conclude", "-c", "--cleanup",
		"--reference"}
	hyperfineValues = []string{"-w", "--warmup", "-m", "--min-runs", "-M", "--max-runs", "-r", "--runs", "--style",
		"--sort", "-u", "--time-unit",
		"--export-asciidoc", "--export-csv", "--export-json", "--export-markdown", "--export-orgmode", "--output", "-n", "--command-name"}
	hyperfineFlags = []string{"-N", "-i", "--ignore-failure", "--show-output", "-h", "--help", "-V", "--version"}
)

// followHyperfine reads each command that hyperfine measures as the text of sh -c. An
// option that is not known could change the shell or the commands.
func followHyperfine(w *walker, _ int, args []arg, s scope, _ call) {
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.Static || a.split || a.Glob:
			w.addUnknown(unknownScript, a.span)
			return
		case slices.Contains(hyperfineValues, a.Value):
			i++
		case slices.Contains(hyperfineFlags, a.Value):
		case slices.Contains(hyperfineScripts, a.Value):
			if i++; i < len(args) {
				w.commandString(args[i:i+1], a, s.inWrapper("hyperfine"))
			}
		case len(a.Value) > 0 && a.Value[0] == '-':
			w.addUnknown(unknownOption, a.span)
			return
		default:
			w.commandString(args[i:i+1], a, s.inWrapper("hyperfine"))
		}
	}
}
