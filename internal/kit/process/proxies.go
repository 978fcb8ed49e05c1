// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/net/http/httpproxy"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxProxies bounds a file of WriteProxies, in bytes.
const maxProxies = 64 << 10

// WriteProxies writes the proxies in an environment to a file that only this user can read, for
// UseProxies in a process that has another environment: in arguments, every user and the log of
// sudo would see passwords. It reports whether there are any; otherwise it writes nothing.
func WriteProxies(path string, getenv func(string) string) (bool, error) {
	c := httpproxy.Config{
		HTTPSProxy: cmp.Or(getenv("https_proxy"), getenv("HTTPS_PROXY")),
		HTTPProxy:  cmp.Or(getenv("http_proxy"), getenv("HTTP_PROXY")),
		NoProxy:    cmp.Or(getenv("no_proxy"), getenv("NO_PROXY")),
	}
	if c.HTTPSProxy+c.HTTPProxy == "" {
		return false, nil
	}
	data, err := json.Marshal(c)
	if err != nil {
		return false, err
	}
	return true, os.WriteFile(path, data, 0o600)
}

// UseProxies puts what WriteProxies wrote into this process's environment. Call it before
// anything connects. Of "" it does nothing. Its error is a *proposal.StopError.
func UseProxies(path string) error {
	if path == "" {
		return nil
	}
	c, err := readProxies(path)
	if err != nil {
		return &proposal.StopError{Code: "network.proxy", Message: "cannot read the file of proxies", Err: err}
	}
	for name, value := range map[string]string{"https_proxy": c.HTTPSProxy, "http_proxy": c.HTTPProxy, "no_proxy": c.NoProxy} {
		if err := os.Setenv(name, value); err != nil {
			return &proposal.StopError{Code: "network.proxy", Message: "cannot use the file of proxies", Err: err}
		}
	}
	return nil
}

func readProxies(path string) (c httpproxy.Config, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProxies+1))
	if err == nil && len(data) > maxProxies {
		err = fmt.Errorf("it has more than %d bytes", maxProxies)
	}
	if err == nil && json.Unmarshal(data, &c) != nil {
		err = errors.New("it is not JSON") // the error would quote the file
	}
	return c, err
}
