// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
)

// Everything that a program of another module sets, implements or passes has a type that it can name.
func TestTypesCanBeNamed(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(path string, of reflect.Type)
	visit = func(path string, of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		if strings.Contains(of.PkgPath(), "/internal/") {
			t.Errorf("%s is a %v", path, of)
			return
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			visit(path, of.Elem())
		case reflect.Map:
			visit(path, of.Key())
			visit(path, of.Elem())
		case reflect.Func:
			for i := range of.NumIn() {
				visit(path+" parameter", of.In(i))
			}
			for i := range of.NumOut() {
				visit(path+" result", of.Out(i))
			}
		case reflect.Struct:
			for i := range of.NumField() {
				if f := of.Field(i); f.IsExported() && strings.Contains(of.PkgPath(), "fumehood") {
					visit(path+"."+f.Name, f.Type)
				}
			}
		}
		if !strings.Contains(of.PkgPath(), "fumehood") {
			return
		}
		methods := of
		if of.Kind() != reflect.Interface {
			methods = reflect.PointerTo(of)
		}
		for i := range methods.NumMethod() {
			visit(path+"."+methods.Method(i).Name, methods.Method(i).Type)
		}
	}
	for _, value := range []any{gate.New, gate.FindBase, gate.FindSetup, gate.NewPool, gate.ReadPolicy, gate.WithOutput} {
		visit("", reflect.TypeOf(value))
	}
	if !seen[reflect.TypeFor[gate.Options]()] || !seen[reflect.TypeFor[gate.Session]()] {
		t.Error("the options or the session were not looked at")
	}
}
