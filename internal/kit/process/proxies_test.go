// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestProxies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxies.json")
	env := map[string]string{"HTTPS_PROXY": "http://user:hidden@proxy.corp:3128", "http_proxy": "http://lower:1", "HTTP_PROXY": "http://upper:1", "NO_PROXY": ".corp"}
	if any, err := WriteProxies(path, func(name string) string { return env[name] }); !any || err != nil {
		t.Fatal(any, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the file: %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	if err := UseProxies(path); err != nil {
		t.Fatal(err)
	}
	want := httpproxy.Config{HTTPSProxy: env["HTTPS_PROXY"], HTTPProxy: env["http_proxy"], NoProxy: ".corp"}
	if got := *httpproxy.FromEnvironment(); got.HTTPSProxy != want.HTTPSProxy || got.HTTPProxy != want.HTTPProxy || got.NoProxy != want.NoProxy {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestProxiesRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxies.json")
	if any, err := WriteProxies(path, func(string) string { return "" }); any || err != nil {
		t.Error(any, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || UseProxies("") != nil {
		t.Error("without proxies there is a file, or one is needed")
	}
	for _, text := range []string{"", "{hidden", `{"HTTPProxy": 7, "HTTPSProxy": "hidden"}`, `"` + strings.Repeat("x", maxProxies) + `"`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := UseProxies(path)
		var stop *proposal.StopError
		if !errors.As(err, &stop) || strings.Contains(fmt.Sprintf("%v %v", err, stop.Err), "hidden") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if UseProxies(path+".absent") == nil {
		t.Error("an absent file is accepted")
	}
}
