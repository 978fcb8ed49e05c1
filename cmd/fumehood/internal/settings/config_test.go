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

// Without a flag, layers are made and used on one's own machine. In CI a run makes none, and uses those of its
// host only where the configuration says so; a process that a job has started knows nothing of CI.
func TestLayerModes(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		request   LayerRequest
		own       string // the mode on one's own machine
		ci, inJob string
	}{
		{LayerRequest{}, "auto", "", ""},
		{LayerRequest{Configured: &yes}, "auto", "read", "read"},
		{LayerRequest{Configured: &no}, "", "", ""},
		{LayerRequest{Mode: "off", Configured: &yes}, "off", "off", "off"},
		{LayerRequest{Mode: "read", Configured: &no}, "read", "read", "read"},
		{LayerRequest{Mode: "write"}, "write", "read", "write"}, // the job has checked what started it
		{LayerRequest{Mode: "auto", Configured: &no}, "auto", "read", "auto"},
	} {
		inJob := c.request
		inJob.InJob = true
		none, job := map[string]string{}, map[string]string{"CI": "true", "GITHUB_ACTIONS": "true"}
		for _, way := range []struct {
			of   LayerRequest
			env  map[string]string
			want string
		}{{c.request, none, c.own}, {c.request, job, c.ci}, {inJob, none, c.inJob}} {
			if got, err := way.of.chooseStore(func(name string) string { return way.env[name] }); err != nil || got.Mode != way.want {
				t.Errorf("%+v with %v: %q, %v, want %q", way.of, way.env, got.Mode, err, way.want)
			}
		}
	}
}

func codeOf(err error) string {
	if f := proposal.FailureOf(err); f != nil {
		return f.Code
	}
	return ""
}
