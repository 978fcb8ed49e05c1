// SPDX-License-Identifier: Apache-2.0

package parse

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
	rest, _, ok := w.inner(wrapper{flags: "c"}, args[1:]) // -a and -l change the program's argv[0]
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
		if r.FD == 0 { // the rest of a script may now be read from elsewhere
			w.unknown(unknownShellStdin, args[0].span)
		}
	}
}
