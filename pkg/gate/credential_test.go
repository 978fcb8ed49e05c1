// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"
)

// A credential reaches the gateway in the place that it names, and one in a header that ends a request
// is refused without its value in the error.
func TestCredential(t *testing.T) {
	for _, c := range []Credential{
		{Name: "TOKEN", Host: "h.example", Path: "/", Header: "x-api-key", Value: "secret"},
		{Name: "TOKEN", Host: "h.example", Path: "/v1", Query: "api_key", Value: "secret"},
	} {
		if err := c.checkCredential(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if w := c.gatewayCredential(); w.Header != c.Header || w.Query != c.Query {
			t.Errorf("the gateway gets %+v", w)
		}
		c.Query, c.Header = "", "Content-Length"
		if err := c.checkCredential(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("header %s: %v", c.Header, err)
		}
	}
}
