// SPDX-License-Identifier: Apache-2.0

package parse

func checkCommand(w *walker, _ int, args []arg, s scope, c call) {
	rest, options, ok := w.skipWrapper(wrapper{flags: "pvV"}, args[1:])
	if !ok {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	if _, asks := options["v"]; asks || len(rest) == 0 {
		return
	}
	if _, asks := options["V"]; asks {
		return
	}
	c.assigns, c.redirects = nil, stdinOnly(c.redirects)
	w.recordCommand(rest, s.inWrapper("command"), c)
}

func checkBuiltin(w *walker, _ int, args []arg, s scope, c call) {
	rest, _, ok := w.skipWrapper(wrapper{}, args[1:])
	if !ok {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.recordCommand(rest, s.inWrapper("builtin"), c)
	}
}

func checkExec(w *walker, _ int, args []arg, s scope, c call) {
	rest, _, ok := w.skipWrapper(wrapper{flags: "c"}, args[1:]) // -a and -l change the program's argv[0]
	if !ok {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.recordCommand(rest, s.inWrapper("exec"), c)
		return
	}
	for _, r := range c.redirects {
		if r.FD == 0 { // the rest of a script may now be read from elsewhere
			w.addUnknown(unknownShellStdin, args[0].span)
		}
	}
}
