// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/egress/registry"
)

// A registry of the caller is used as it says, only where policy granted it, and an invalid one stops the
// run without its values in the error.
func TestRegistries(t *testing.T) {
	own := Registry{
		Name: "npm", Source: "own", URLs: []string{"https://Mirror.example/npm", "http://[::1]:8080"}, Env: map[string]string{"npm_config_registry": "https://mirror.example/npm"},
		Files: map[string]string{"~/b": "2", "/etc/a": "1"}, Credentials: []Credential{{Host: "Mirror.example", Value: "Bearer secret"}, {Host: "[::1]:8443", Path: "/x", Header: "X-Key", Value: "secret"}},
	}
	o := Options{Registries: func(context.Context, []string) ([]Registry, error) {
		return []Registry{own, {Name: "pypi", URLs: []string{"ftp://"}}}, nil
	}}
	want := []registry.Registry{{
		Name: "npm", Source: "own", Env: own.Env,
		Origins: []registry.Origin{{Scheme: "https", Host: "mirror.example", Port: 443, Path: "/npm"}, {Scheme: "http", Host: "::1", Port: 8080, Path: "/"}},
		Files:   []registry.File{{Path: "/etc/a", Content: "1"}, {Path: "~/b", Content: "2"}},
		Credentials: []registry.Credential{
			{Registry: "npm", Scheme: "https", Host: "mirror.example", Port: 443, Path: "/", Header: "Authorization", Value: "Bearer secret"},
			{Registry: "npm", Scheme: "https", Host: "::1", Port: 8443, Path: "/x", Header: "X-Key", Value: "secret"},
		},
	}}
	got, err := o.registriesOf(t.Context(), []string{"npm"})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := o.registriesOf(t.Context(), []string{"go"}); len(got) != 0 || err != nil {
		t.Errorf("not granted: %+v, %v", got, err)
	}
	for name, bad := range map[string]Registry{
		"scheme":     {URLs: []string{"ftp://secret.example"}},
		"password":   {URLs: []string{"http://user:secret@h.example"}},
		"header":     {Credentials: []Credential{{Host: "h.example", Header: "Host", Value: "secret"}}},
		"value":      {Credentials: []Credential{{Host: "h.example", Value: "secret\n"}}},
		"no value":   {Credentials: []Credential{{Host: "h.example"}}},
		"no host":    {Credentials: []Credential{{Value: "secret"}}},
		"port":       {Credentials: []Credential{{Host: "h.example:0", Value: "secret"}}},
		"path":       {Credentials: []Credential{{Host: "h.example", Path: "x", Value: "secret"}}},
		"query":      {Credentials: []Credential{{Host: "h.example", Query: "key", Value: "secret"}}},
		"for inside": {Credentials: []Credential{{Name: "TOKEN", Host: "h.example", Value: "secret"}}},
	} {
		if got, err := bad.toRegistry(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
