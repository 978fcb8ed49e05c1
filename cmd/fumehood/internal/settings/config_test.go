// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/pkg/gate"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// What the operator says counts more than the file, a checkout is trusted only if the operator
// names its file, and what is invalid is refused.
func TestApplyConfig(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, config.Path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("schema: fumehood.config/v1\nsetup: none\nresults: read\ntimeout: 7m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request       ConfigRequest
		code, trusted string
		results       string
		timeout       string
	}{
		"of the directory": {request: ConfigRequest{Trusted: dir}, results: "read", timeout: "7m0s"},
		"named":            {request: ConfigRequest{File: file, Trusted: empty}, trusted: dir, results: "read", timeout: "7m0s"},
		"none":             {request: ConfigRequest{File: "none", Trusted: dir}, results: "off", timeout: "0s"},
		"no file":          {request: ConfigRequest{Trusted: empty}, results: "off", timeout: "0s"},
		"overruled":        {request: ConfigRequest{Trusted: dir, Results: "off"}, results: "off", timeout: "7m0s"},
		"invalid results":  {request: ConfigRequest{Trusted: dir, Results: "perhaps"}, code: "results.mode"},
		"invalid layers":   {request: ConfigRequest{Trusted: dir, Layers: LayerRequest{Mode: "perhaps"}}, code: "layers.mode"},
		"invalid override": {request: ConfigRequest{Trusted: dir, Overrides: []config.Override{{Field: "cache", Value: "perhaps", From: "--cache"}}}, code: "config.invalid"},
	} {
		o := gate.Options{Workspace: empty}
		found, err := c.request.Apply(t.Context(), &o, func(string) string { return "" })
		if code := codeOf(err); code != c.code {
			t.Errorf("%s: %q, %v", name, code, err)
		} else if err == nil && (c.request.trustedCheckout() != c.trusted || o.Results.Mode != c.results || found.Timeout.Std().String() != c.timeout) {
			t.Errorf("%s: trusted %q, results %v, timeout %v", name, c.request.trustedCheckout(), o.Results, found.Timeout.Std())
		}
	}
}

func codeOf(err error) string {
	if f := proposal.FailureOf(err); f != nil {
		return f.Code
	}
	return ""
}
