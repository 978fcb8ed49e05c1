// SPDX-License-Identifier: Apache-2.0

package points

import (
	"reflect"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// beyondKey are the fields of an Exec on which no reusable answer depends, and why.
var beyondKey = map[string]string{
	"Argv": "a rule that uses it gives no reusable answer", "ArgvCut": "as Argv", "ArgvDigest": "as Argv", "Cwd": "as Argv; Asked is absolute",
	"Parent": "policy does not see it", "Pid": "policy does not see it", "ParentPath": "as Argv", "From": "as Argv", "Script": "as Argv", "First": "as Argv",
	"Text": "policy does not see it", "Named": "policy does not see it", "Variables": "policy does not see it",
	"Lineage": "package lineage reuses no answer of policy about a text's process", "Whole": "as Lineage", "Renamed": "as Lineage", "Partial": "as Lineage",
	"Changed": "as Lineage", "EnvCut": "as Lineage", "Chain": "no answer about what a tool starts is reused", "Under": "as Chain",
}

// Every field of an Exec is part of the key, or known to be beyond it: a new field needs a
// decision. The key changes with each of its fields.
func TestExecKey(t *testing.T) {
	key := reflect.TypeFor[ExecKey]()
	for field := range reflect.TypeFor[proposal.Exec]().Fields() {
		in, keyed := key.FieldByName(field.Name)
		if _, beyond := beyondKey[field.Name]; keyed == beyond || keyed && in.Type != field.Type {
			t.Errorf("%s is in the key and beyond it, or in neither", field.Name)
			continue
		}
		x := proposal.Exec{}
		v := reflect.ValueOf(&x).Elem().FieldByIndex(field.Index)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int:
			v.SetInt(1)
		case reflect.Uint32:
			v.SetUint(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		default:
			t.Fatalf("%s: vary a %s here", field.Name, v.Kind())
		}
		if changed := KeyOf(x).String() != KeyOf(proposal.Exec{}).String(); changed != keyed {
			t.Errorf("%s: the key changes with it: %v", field.Name, changed)
		}
	}
	if len(beyondKey)+key.NumField() != reflect.TypeFor[proposal.Exec]().NumField() {
		t.Error("a field that is listed does not exist")
	}
}
