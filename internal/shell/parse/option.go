// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"
)

// A wrapper is a program whose arguments are options, a few operands, and then
// another command. Everything before that command must be literal and known.
type wrapper struct {
	flags    string   // short options without a value
	values   string   // short options with a value
	attached string   // short options whose value may only be attached
	long     []string // long options; "name=" takes a value, "name=?" only an attached one
	operands int      // words between the options and the command
	assigns  bool     // NAME=value words may precede the command
	noStdin  bool     // the command does not get the wrapper's stdin
	refuse   string   // short options that make the wrapper read the command from elsewhere
}

var wrappers = map[string]wrapper{
	"env":     {flags: "i0v", values: "uC", refuse: "S", long: []string{"ignore-environment", "null", "debug", "unset=", "chdir=", "block-signal=?", "default-signal=?", "ignore-signal=?", "list-signal-handling"}, assigns: true},
	"timeout": {flags: "fpv", values: "ks", long: []string{"foreground", "preserve-status", "verbose", "kill-after=", "signal="}, operands: 1},
	"nice":    {flags: "0123456789", values: "n", long: []string{"adjustment="}},
	"nohup":   {},
	"setsid":  {flags: "cfw", long: []string{"ctty", "fork", "wait"}},
	"stdbuf":  {values: "ioe", long: []string{"input=", "output=", "error="}},
	"ionice":  {flags: "t", values: "cn", long: []string{"class=", "classdata=", "ignore"}},
	"taskset": {flags: "ac", long: []string{"all-tasks", "cpu-list"}, operands: 1},
	"chrt":    {flags: "bfiorRav", values: "TPD", long: []string{"batch", "fifo", "idle", "other", "rr", "reset-on-fork", "verbose"}, operands: 1},
	"prlimit": {attached: "cdefilmnqrstuvxy", long: prlimitOptions()},
	"time":    {flags: "apvq", values: "fo", long: []string{"append", "portability", "verbose", "quiet", "format=", "output="}},
	"sudo":    {flags: "AbEHknPS", values: "CDghpRrtTuU", long: []string{"non-interactive", "preserve-env", "set-home", "stdin", "user=", "group="}, assigns: true},
	"doas":    {flags: "n", values: "uC"},
	"flock":   {flags: "sxenuoF", values: "wE", long: []string{"shared", "exclusive", "nonblock", "nb", "unlock", "close", "no-fork", "verbose", "wait=", "timeout=", "conflict-exit-code="}, operands: 1},
	"chroot":  {long: []string{"userspec=", "groups=", "skip-chdir"}, operands: 1},
	"unshare": {flags: "mnpuiUCTrcf", long: []string{"mount", "net", "pid", "uts", "ipc", "user", "cgroup", "time", "map-root-user", "map-current-user", "fork", "mount-proc=?", "kill-child=?"}},
	"strace":  {flags: "fFcCdDhiknqrtTvVwxyzZ", values: "abeEIoOpPsSuUX", long: []string{"follow-forks", "summary-only", "quiet=?", "trace=", "output=", "string-limit="}},
	"ltrace":  {flags: "bcCfhiLrStTV", values: "aAelnoswx"},
	"busybox": {},
	"xargs": {flags: "0rtpxo", values: "dEILnPs", attached: "eil", refuse: "a", noStdin: true, long: []string{
		"null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "show-limits", "delimiter=", "max-args=", "max-procs=",
		"max-chars=", "max-lines=?", "replace=?", "eof=?", "process-slot-var="}},
}

func prlimitOptions() []string {
	var out []string
	for name := range strings.FieldsSeq("as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack") {
		out = append(out, name+"=?")
	}
	return out
}

// skipWrapper skips the options and operands of a wrapper.
func (w *walker) skipWrapper(wrap wrapper, args []arg) (rest []arg, options map[string]arg, ok bool) {
	options = map[string]arg{}
	i := 0
	for i < len(args) {
		a := args[i]
		if !a.Static {
			return args[i:], options, a.Value != "" && a.Value[0] != '-' && !a.split
		}
		if a.Value == "--" {
			i++
			break
		}
		if len(a.Value) < 2 || a.Value[0] != '-' {
			break
		}
		used := wrap.readOption(args[i:], options)
		if used == 0 {
			return nil, nil, false
		}
		i += used
	}
	return args[i:], options, true
}

// readOption reads one option and returns how many words it takes; 0 if it is unknown.
func (wrap wrapper) readOption(args []arg, options map[string]arg) int {
	text := args[0].Value
	if long, ok := strings.CutPrefix(text, "--"); ok {
		return wrap.longOption(long, args, options)
	}
	for j := 1; j < len(text); j++ {
		letter := text[j : j+1]
		switch {
		case strings.Contains(wrap.flags, letter):
			options[letter] = args[0]
		case strings.Contains(wrap.attached, letter):
			options[letter] = setArgValue(args[0], text[j+1:])
			return 1
		case strings.Contains(wrap.values, letter):
			if j+1 < len(text) {
				options[letter] = setArgValue(args[0], text[j+1:])
				return 1
			}
			if len(args) < 2 || !args[1].Static {
				return 0
			}
			options[letter] = args[1]
			return 2
		default:
			return 0
		}
	}
	return 1
}

func (wrap wrapper) longOption(long string, args []arg, options map[string]arg) int {
	name, value, attached := strings.Cut(long, "=")
	switch {
	case slices.Contains(wrap.long, name+"=?"):
	case slices.Contains(wrap.long, name+"="):
		if !attached {
			if len(args) < 2 || !args[1].Static {
				return 0
			}
			options[name] = args[1]
			return 2
		}
	case !slices.Contains(wrap.long, name) || attached:
		return 0
	}
	options[name] = setArgValue(args[0], value)
	return 1
}

func setArgValue(a arg, value string) arg {
	a.Value = value
	return a
}
