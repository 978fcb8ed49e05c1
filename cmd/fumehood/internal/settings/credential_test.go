// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/gate"
)

func TestParseCredential(t *testing.T) {
	getenv := func(name string) string { return map[string]string{"TOKEN": "secret", "LINES": "a\nsecret"}[name] }
	for _, text := range []string{"", "TOKEN", "TOKEN@", "TOKEN@https://h.example", "secret@x y", "NONE@h.example", "LINES@h.example", "1@h.example", "TOKEN@h.example/?q",
		"TOKEN@h.example;header=", "TOKEN@h.example;header=Host", "TOKEN@h.example;header=transfer-encoding", "TOKEN@h.example;header=proxy-authorization", "TOKEN@h.example;header=X:Y", "TOKEN@h.example;header=X-Key;header=X-Key",
		"TOKEN@h.example;query=", "TOKEN@h.example;query=a&b", "TOKEN@h.example;query=key;header=X-Key", "TOKEN@h.example;header=X-Key;query=key"} {
		if c, err := ParseCredential(text, getenv); err == nil {
			t.Errorf("%q is %+v", text, c)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error repeats a value: %v", text, err)
		}
	}
	c, err := ParseCredential("TOKEN@h.example:8443/a/b", getenv)
	if want := (gate.Credential{Name: "TOKEN", Host: "h.example:8443", Path: "/a/b", Value: "secret"}); err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = ParseCredential("TOKEN@h.example;header=x-api-key", getenv)
	if want := (gate.Credential{Name: "TOKEN", Host: "h.example", Path: "/", Header: "x-api-key", Value: "secret"}); err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = ParseCredential("TOKEN@h.example/v1;query=api_key", getenv)
	if want := (gate.Credential{Name: "TOKEN", Host: "h.example", Path: "/v1", Query: "api_key", Value: "secret"}); err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestParseResolver(t *testing.T) {
	for text, want := range map[string]string{"192.0.2.53": "192.0.2.53:53", "192.0.2.53:5353": "192.0.2.53:5353", "[2001:db8::1]:53": "[2001:db8::1]:53", "2001:db8::1": "[2001:db8::1]:53"} {
		if got, err := ParseResolver(text); err != nil || got.String() != want {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "dns.example", "192.0.2.53:0", "192.0.2.53:x"} {
		if got, err := ParseResolver(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
