// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A wrapper is a program whose arguments are options, a few operands, and then
// another command. Everything before that command must be literal and known.
type wrapper struct {
	flags    string   // short options without a value
	values   string   // short options with a value
	attached string   // short options whose value may only be attached
	long     []string // long options; "name=" takes a value, "name=?" only an attached one
	operands int      // words between the options and the command
	assigns  bool     // NAME=value words may stand before the command
	stop     string   // options after which nothing more is run: they only ask
	noStdin  bool     // the command does not get the wrapper's stdin
	refuse   string   // short options that make the wrapper read the command elsewhere
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

type follower func(w *walker, index int, args []arg, s scope, c call)

// wrapperOf returns what follows the program name; nil when it runs no other.
func wrapperOf(name string) follower {
	switch name {
	case "find":
		return followFind
	case "git":
		return followGit
	case "su", "script", "watch", "runuser":
		return followCommandString
	case "parallel", "expect", "ltrace", "tmux", "screen", "at", "batch", "systemd-run", "start-stop-daemon", "run-parts", "setarch", "fakeroot", "proot", "capsh":
		return followNothing
	case "xargs":
		return followXargs
	}
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "ld.so" {
		return followLoader
	}
	if _, ok := wrappers[name]; ok {
		return followWrapper
	}
	return nil
}

func followNothing(w *walker, _ int, args []arg, _ scope, _ call) {
	w.unknown(unknownWrapped, args[0].span)
}

// inner skips the options and operands of a wrapper.
func (w *walker) inner(wrap wrapper, args []arg) (rest []arg, options map[string]arg, ok bool) {
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
		used := wrap.option(args[i:], options)
		if used == 0 {
			return nil, nil, false
		}
		i += used
	}
	return args[i:], options, true
}

// option reads one option and returns how many words it takes, 0 when it is not
// known.
func (wrap wrapper) option(args []arg, options map[string]arg) int {
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
			options[letter] = valued(args[0], text[j+1:])
			return 1
		case strings.Contains(wrap.values, letter):
			if j+1 < len(text) {
				options[letter] = valued(args[0], text[j+1:])
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
	options[name] = valued(args[0], value)
	return 1
}

func valued(a arg, value string) arg {
	a.Value = value
	return a
}

func followWrapper(w *walker, index int, args []arg, s scope, c call) {
	name := base(args[0].Value)
	wrap := wrappers[name]
	rest, options, ok := w.inner(wrap, args[1:])
	if !ok {
		kind := unknownOption
		if name == "env" && slices.ContainsFunc(args[1:], splitsString) {
			kind = unknownFileDriven
		}
		w.unknown(kind, args[0].span)
		return
	}
	if output, has := options["o"]; name == "strace" && has && strings.ContainsAny(output.Value[:min(1, len(output.Value))], "|!") {
		w.unknown(unknownWrapped, output.span)
		return
	}
	if variable, has := options["E"]; name == "strace" && has {
		w.wrapperAssign(index, variable)
	}
	if wrap.operands > 0 {
		rest, ok = w.skipOperands(name, wrap, rest)
		if !ok {
			return
		}
	}
	if wrap.assigns {
		if name == "env" && len(rest) > 0 && rest[0].Static && rest[0].Value == "-" {
			rest = rest[1:]
		}
		rest = w.envAssigns(index, rest)
	}
	if len(rest) == 0 {
		w.runsNothing(name, args[0])
		return
	}
	if name == "flock" && rest[0].Static && (rest[0].Value == "-c" || rest[0].Value == "--command") {
		w.commandString(rest[1:], args[0], s.through("flock"))
		return
	}
	c.assigns, c.redirects = nil, stdinOnly(c.redirects)
	w.run(rest, s.through(name), c)
}

// runsNothing refuses the wrappers that start a shell when no command is given.
func (w *walker) runsNothing(name string, program arg) {
	switch name {
	case "chroot", "unshare", "sudo", "doas":
		w.unknown(unknownShellStdin, program.span)
	}
}

// stdinOnly keeps the redirections that say what a wrapped shell would read.
func stdinOnly(redirects []proposal.Redirect) []proposal.Redirect {
	var out []proposal.Redirect
	for _, r := range redirects {
		if r.FD == 0 {
			out = append(out, r)
		}
	}
	return out
}

func splitsString(a arg) bool {
	return strings.HasPrefix(a.Value, "-") && (strings.Contains(a.Value, "S") || strings.HasPrefix(a.Value, "--split"))
}

func (w *walker) skipOperands(name string, wrap wrapper, rest []arg) ([]arg, bool) {
	if len(rest) < wrap.operands {
		return nil, true
	}
	for _, a := range rest[:wrap.operands] {
		if a.split || a.Glob || (!a.Static && a.Value == "" && name != "timeout") || (name == "chrt" && strings.Trim(a.Value, "0123456789") != "") {
			w.unknown(unknownOption, a.span)
			return nil, false
		}
	}
	return rest[wrap.operands:], true
}

// envAssigns records NAME=value words as exported assignments of the wrapper.
func (w *walker) envAssigns(index int, rest []arg) []arg {
	for len(rest) > 0 {
		if name, _, ok := strings.Cut(rest[0].Value, "="); !ok || name == "" {
			break
		}
		w.wrapperAssign(index, rest[0])
		rest = rest[1:]
	}
	return rest
}

func (w *walker) wrapperAssign(index int, a arg) {
	name, value, _ := strings.Cut(a.Value, "=")
	word := proposal.Word{Value: value, Static: a.Static, Glob: a.Glob}
	w.commands[index].Assigns = append(w.commands[index].Assigns, proposal.Assign{Name: name, Value: word, Exported: true})
	w.assigned(name, a.span, scope{})
	w.localeValue(name, word, a.span)
	if a.src != nil {
		w.origin(name).addWord(w, a.src)
	} else {
		w.origin(name).addText(value)
	}
	if a.split {
		w.unknown(unknownOption, a.span)
	}
}

func followXargs(w *walker, _ int, args []arg, s scope, c call) {
	rest, options, ok := w.inner(wrappers["xargs"], args[1:])
	if !ok {
		kind := unknownOption
		if slices.ContainsFunc(args[1:], func(a arg) bool { return strings.HasPrefix(a.Value, "-a") || strings.HasPrefix(a.Value, "--arg") }) {
			kind = unknownFileDriven
		}
		w.unknown(kind, args[0].span)
		return
	}
	c.assigns, c.redirects, c.stdin = nil, nil, ""
	if len(rest) == 0 {
		rest = []arg{{Word: proposal.Word{Value: "echo", Static: true}, span: args[0].span}}
	}
	if replace := xargsReplace(options); replace != "" {
		rest = replaced(rest, replace)
	}
	rest = append(rest[:len(rest):len(rest)], arg{split: true, span: args[0].span})
	w.run(rest, s.through("xargs"), c)
}

// xargsReplace is the string that xargs replaces by its input.
func xargsReplace(options map[string]arg) string {
	for _, name := range []string{"I", "i", "replace"} {
		if option, ok := options[name]; ok {
			if option.Value == "" {
				return "{}"
			}
			return option.Value
		}
	}
	return ""
}

// replaced marks the words that hold mark: only their beginning is known.
func replaced(args []arg, mark string) []arg {
	out := slices.Clone(args)
	for i, a := range out {
		if cut := strings.Index(a.Value, mark); cut >= 0 {
			out[i].Value, out[i].Static, out[i].src = a.Value[:cut], false, nil
		}
	}
	return out
}

func checkCommand(w *walker, _ int, args []arg, s scope, c call) {
	rest, options, ok := w.inner(wrapper{flags: "pvV"}, args[1:])
	if !ok {
		w.unknown(unknownOption, args[0].span)
		return
	}
	if _, asks := options["v"]; asks || len(rest) == 0 {
		return
	}
	if _, asks := options["V"]; asks {
		return
	}
	c.assigns, c.redirects = nil, stdinOnly(c.redirects)
	w.run(rest, s.through("command"), c)
}

func checkBuiltin(w *walker, _ int, args []arg, s scope, c call) {
	rest, _, ok := w.inner(wrapper{}, args[1:])
	if !ok {
		w.unknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.run(rest, s.through("builtin"), c)
	}
}

func checkExec(w *walker, _ int, args []arg, s scope, c call) {
	rest, _, ok := w.inner(wrapper{flags: "c"}, args[1:]) // -a and -l change what the program thinks it is
	if !ok {
		w.unknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.run(rest, s.through("exec"), c)
		return
	}
	for _, r := range c.redirects {
		if r.FD == 0 { // the rest of a script may now come from elsewhere
			w.unknown(unknownShellStdin, args[0].span)
		}
	}
}

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
