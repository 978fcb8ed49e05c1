// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func followXargs(w *walker, _ int, args []arg, s scope, c call) {
	if asksAbout(args[1:]) {
		return
	}
	rest, options, ok := w.skipWrapper(wrappers["xargs"], args[1:])
	if !ok {
		kind := unknownOption
		if slices.ContainsFunc(args[1:],
			func(a arg) bool { return strings.HasPrefix(a.Value, "-a") || strings.HasPrefix(a.Value, "--arg") }) {
			kind = unknownArgFile
		}
		w.addUnknown(kind, args[0].span)
		return
	}
	c.assigns, c.redirects, c.stdin = nil, nil, ""
	if len(rest) == 0 {
		rest = []arg{{Word: proposal.Word{Value: "echo", Static: true}, span: args[0].span}}
	}
	if replace := xargsReplace(options); replace != "" {
		rest = cutAtMark(rest, replace)
	}
	rest = append(rest[:len(rest):len(rest)],
		arg{Word: proposal.Word{Split: true}, split: !checksSyntax(rest, options), span: args[0].span})
	w.recordCommand(rest, s.inWrapper("xargs"), c)
}

// xargsReplace returns the string that xargs replaces with its input.
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

// cutAtMark marks the words that contain mark: only their prefix is known.
func cutAtMark(args []arg, mark string) []arg {
	out := slices.Clone(args)
	for i, a := range out {
		if cut := strings.Index(a.Value, mark); cut >= 0 {
			out[i].Value, out[i].Static, out[i].src = a.Value[:cut], false, nil
		}
	}
	return out
}

// checksSyntax reports whether xargs passes one word at a time to bash -n. One word
// can neither supply a script nor cancel -n and name one.
func checksSyntax(rest []arg, options map[string]arg) bool {
	single := options["n"].Value == "1" || options["max-args"].Value == "1"
	return single && len(rest) == 2 && rest[0].Static && bashLike(rest[0].Value) && rest[1].Static &&
		rest[1].Value == "-n"
}
