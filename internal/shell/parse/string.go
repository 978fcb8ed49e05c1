// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// followCommandString follows the programs that pass one string to a shell.
func followCommandString(w *walker, _ int, args []arg, s scope, c call) {
	name := baseName(args[0].Value)
	switch name {
	case "watch":
		w.followWatch(args, s, c)
		return
	case "script":
		rest, options, ok := w.skipWrapper(wrapper{flags: "aefqt", values: "c",
			long: []string{"append", "return", "flush", "quiet", "command="}}, permuteOptions(args[1:]))
		w.optionString(args[0], rest, options, ok, s)
		return
	}
	rest, options, ok := w.skipWrapper(wrapper{flags: "lm", values: "c", long: []string{"login", "command="}},
		permuteOptions(args[1:]))
	w.optionString(args[0], rest, options, ok, s)
}

// permuteOptions moves the operands after the options, as GNU getopt does. A lone dash and
// everything after -- stay operands.
func permuteOptions(args []arg) []arg {
	var options, operands []arg
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.Static && a.Value == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(a.Value) > 1 && a.Value[0] == '-' || !a.Static:
			options = append(options, a)
			if a.Static && strings.HasSuffix(a.Value, "c") && i+1 < len(args) && !strings.HasPrefix(a.Value, "--") ||
				a.Value == "--command" && i+1 < len(args) {
				i++
				options = append(options, args[i])
			}
		default:
			operands = append(operands, a)
		}
	}
	return append(options, operands...)
}

func (w *walker) optionString(program arg, _ []arg, options map[string]arg, ok bool, s scope) {
	if !ok {
		w.addUnknown(unknownOption, program.span)
		return
	}
	text, has := options["c"]
	if !has {
		text, has = options["command"]
	}
	if !has {
		w.addUnknown(unknownShellStdin, program.span)
		return
	}
	w.commandString([]arg{text}, program, s.inWrapper(baseName(program.Value)))
}

// commandString reads the words that a program joins and passes to sh -c.
func (w *walker) commandString(args []arg, program arg, s scope) {
	var words []string
	for _, a := range args {
		if !a.Static {
			w.addUnknown(unknownScript, a.span)
			return
		}
		words = append(words, a.Value)
	}
	if len(words) == 0 {
		w.addUnknown(unknownShellStdin, program.span)
		return
	}
	w.shellText(strings.Join(words, " "), args[0].span, s)
}

// shellText follows text that a program passes to sh -c.
func (w *walker) shellText(text string, span proposal.Span, s scope) {
	var args []arg
	for _, word := range []string{"sh", "-c", text} {
		args = append(args, arg{Word: proposal.Word{Value: word, Static: true}, span: span})
	}
	w.recordCommand(args, s, call{span: span})
}

func (w *walker) followWatch(args []arg, s scope, c call) {
	watch := wrapper{flags: "bcCdegprtwx", values: "nq",
		long: []string{"beep", "color", "no-color", "differences=?", "errexit", "chgexit", "precise", "no-title",
			"no-wrap", "exec", "interval=", "equexit="}}
	rest, options, ok := w.skipWrapper(watch, args[1:])
	if !ok || len(rest) == 0 {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	_, short := options["x"]
	_, long := options["exec"]
	if short || long {
		c.assigns, c.redirects = nil, nil
		w.recordCommand(rest, s.inWrapper("watch -x"), c)
		return
	}
	w.commandString(rest, args[0], s.inWrapper("watch"))
}
