// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

var execActions = map[string]bool{"-exec": true, "-execdir": true, "-ok": true, "-okdir": true}

// actionWord refuses words that may end one action early and begin another.
func (w *walker) actionWord(a arg) {
	if a.Static && execActions[a.Value] {
		w.addUnknown(unknownWrapped, a.span)
	}
	if !a.Static && a.Value == "" && a.src != nil {
		w.actions = append(w.actions, a)
	}
}

// followFind follows find's -exec and similar actions.
func followFind(w *walker, _ int, args []arg, s scope, c call) {
	for i := 1; i < len(args); i++ {
		action := args[i].Value
		if !args[i].Static || !execActions[action] {
			w.findWord(args, i)
			continue
		}
		end := i + 1
		for end < len(args) && !endsExec(args, end) {
			end++
		}
		if end == len(args) || end == i+1 {
			w.addUnknown(unknownWrapped, args[i].span)
			return
		}
		for _, a := range args[i+1 : end] {
			w.actionWord(a)
		}
		c.assigns, c.redirects, c.stdin = nil, nil, ""
		if !slices.ContainsFunc(args[i+1:end], hasOtherMark) {
			w.found = foundScripts(args[1:i])
		}
		w.recordCommand(cutAtMark(args[i+1:end], "{}"), s.inWrapper("find "+action), c)
		w.found = nil
		i = end
	}
}

func hasOtherMark(a arg) bool { return a.Value != "{}" && strings.Contains(a.Value, "{}") }

// foundScripts returns the pattern of the scripts of the workspace that find finds; nil if it may find anything else.
func foundScripts(args []arg) (scripts []string) {
	places := true
	for i, a := range args {
		if !a.Static {
			return nil
		}
		switch places = places && !strings.HasPrefix(a.Value, "-"); {
		case otherPlaces.MatchString(a.Value):
			return nil
		case places && !relativePlace.MatchString(a.Value):
			return nil
		case a.Value == "-o" || a.Value == "-or" || a.Value == "," || a.Value == "!" || a.Value == "-not":
			return nil
		case i > 0 && args[i-1].Value == "-name":
			scripts = append(scripts, a.Value)
		}
	}
	if len(scripts) != 1 || !loopScript.MatchString(scripts[0]) {
		return nil
	}
	return scripts
}

// otherPlaces matches options before the places, and those that lead elsewhere.
var otherPlaces = pattern.New(`^-([HLP]|[DO].*|follow|files0-from)$`)

var relativePlace = pattern.New(`^(\.|(\./)?\w[\w-]*(/\w[\w.-]*)*/?)$`)

// findWord refuses words that may belong to an action that is not literal: an end
// without a beginning, or a variable that the text sets to an option.
func (w *walker) findWord(args []arg, i int) {
	a := args[i]
	if a.Static && (a.Value == ";" || a.Value == "+") {
		w.addUnknown(unknownWrapped, a.span)
	}
	if !a.Static && a.Value == "" && a.src != nil {
		w.actions = append(w.actions, a)
	}
}

// checkActions refuses expansions in find's arguments that the text sets to -exec.
func (w *walker) checkActions() {
	for _, a := range w.actions {
		value := &origin{}
		value.addWord(w, a.src)
		if value.option || slices.ContainsFunc(value.names, w.mayAct) {
			w.addUnknown(unknownWrapped, a.span)
		}
	}
}

func (w *walker) mayAct(name string) bool {
	o := w.values[name]
	return o != nil && (o.option || slices.ContainsFunc(o.names, func(other string) bool {
		return other != name && w.values[other] != nil && w.values[other].option
	}))
}

// endsExec reports whether args[i] ends an action: a semicolon, or a plus after {}.
func endsExec(args []arg, i int) bool {
	if !args[i].Static {
		return false
	}
	return args[i].Value == ";" || args[i].Value == "+" && args[i-1].Static && args[i-1].Value == "{}"
}

// followLoader follows the dynamic loader called as a program.
func followLoader(w *walker, _ int, args []arg, s scope, c call) {
	loader := wrapper{long: []string{"library-path=", "preload=", "argv0=", "audit=", "inhibit-rpath=", "inhibit-cache",
		"list", "verify"}}
	rest, _, ok := w.skipWrapper(loader, args[1:])
	if !ok {
		w.addUnknown(unknownOption, args[0].span)
		return
	}
	if len(rest) > 0 {
		c.assigns, c.redirects = nil, stdinOnly(c.redirects)
		w.recordCommand(rest, s.inWrapper(baseName(args[0].Value)), c)
	}
}
