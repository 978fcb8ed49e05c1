// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/egress/redact"
	"github.com/fumehood/fumehood/internal/egress/registry"
	"github.com/fumehood/fumehood/pkg/gate"
)

// Every setting reaches the options; a wrong one is refused with a code, and no value of a
// variable is in an error.
func TestTexts(t *testing.T) {
	getenv := func(name string) string {
		return map[string]string{"TOKEN": "secret-value", "LINES": "a\nsecret-value"}[name]
	}
	handed := []redact.Mask{{Name: "handed", Value: "handed-value"}}
	good := Texts{Masks: []string{"TOKEN"}, Credentials: []string{"TOKEN@h.example"}, Resolvers: []string{"192.0.2.53"}, Mounts: []string{"/usr/share:/mnt"}, Owner: "1000:1000"}
	o, err := good.MakeOptions(handed, getenv)
	if err != nil || len(o.Masks) != 2 || len(o.Credentials) != 1 || len(o.Resolvers) != 1 || len(o.MountsUnsafe) != 1 || o.MountsUnsafe[0].Note == "" ||
		len(o.ToolOwners) != 1 || o.ToolOwners[0] != 1000 || o.Signer != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := (Texts{}).MakeOptions(nil, getenv); err != nil || len(o.Masks)+len(o.ToolOwners)+len(o.MountsUnsafe) != 0 {
		t.Errorf("nothing set: %+v, %v", o, err)
	}
	for name, bad := range map[string]Texts{
		"mask":       {Masks: []string{"NONE"}},
		"credential": {Credentials: []string{"LINES@h.example"}},
		"resolver":   {Resolvers: []string{"dns.example"}},
		"mount":      {Mounts: []string{"/nowhere/at/all"}},
		"owner":      {Owner: "root"},
		"key":        {AuditKey: "/nowhere/at/all"},
	} {
		if _, err := bad.MakeOptions(handed, getenv); err == nil || strings.Contains(err.Error(), "-value") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was found on a host for a job reaches the gate complete.
func TestRegistries(t *testing.T) {
	found, err := FixedRegistries([]registry.Registry{{
		Name: "npm", Source: "own", Env: map[string]string{"A": "1"}, Origins: []registry.Origin{{Scheme: "https", Host: "::1", Port: 8443, Path: "/a"}},
		Files:       []registry.File{{Path: "~/.npmrc", Content: "x"}},
		Credentials: []registry.Credential{{Registry: "npm", Scheme: "https", Host: "h.example", Path: "/a", Header: "Authorization", Value: "v"}},
	}})(t.Context(), nil)
	want := []gate.Registry{{
		Name: "npm", Source: "own", Env: map[string]string{"A": "1"}, URLs: []string{"https://[::1]:8443/a"}, Files: map[string]string{"~/.npmrc": "x"},
		Credentials: []gate.Credential{{Host: "h.example:443", Path: "/a", Header: "Authorization", Value: "v"}},
	}}
	if diff := cmp.Diff(want, found); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
