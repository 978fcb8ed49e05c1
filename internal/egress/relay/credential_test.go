// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	placeholder = "fumehood-placeholder-1"
	value       = "s3cret-value"
)

func basicOf(text string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(text))
}

func TestCredential(t *testing.T) {
	token := Credential{Name: "token", Host: "allowed.example", Scheme: "https", PathPrefix: "/mine",
		Placeholder: placeholder, Header: "Authorization", Value: value}
	always := token
	always.Placeholder, always.Value = "", "Bearer "+value
	keyed := token
	keyed.Header = "x-api-key"
	other := token
	other.Host = "other.example"
	port := token
	port.Host = "allowed.example:8443"
	tests := []struct {
		name       string
		credential Credential
		scheme     string
		path, sent string
		want       string
	}{
		{"bearer", token, "https", "/mine/x", "Bearer " + placeholder, "Bearer " + value},
		{"basic", token, "https", "/mine", basicOf("me:" + placeholder), basicOf("me:" + value)},
		{"set for a program that has none", always, "https", "/mine/x", "", "Bearer " + value},
		{"set over what it has", always, "https", "/mine/x", "mine", "Bearer " + value},
		{"not in clear", token, "http", "/mine/x", "Bearer " + placeholder, "Bearer " + placeholder},
		{"not for another path", token, "https", "/minerals", "Bearer " + placeholder, "Bearer " + placeholder},
		{"not above", token, "https", "/", "Bearer " + placeholder, "Bearer " + placeholder},
		{"not by an encoded slash", token, "https", "/mine%2fx", "Bearer " + placeholder, "Bearer " + placeholder},
		{"not for another host", other, "https", "/mine/x", "Bearer " + placeholder, "Bearer " + placeholder},
		{"not for another port", port, "https", "/mine/x", "Bearer " + placeholder, "Bearer " + placeholder},
		{"another header", keyed, "https", "/mine/x", "Bearer " + placeholder, "Bearer " + placeholder},
		{"nothing to replace", token, "https", "/mine/x", "Bearer own", "Bearer own"},
	}
	for _, test := range tests {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, h2 %v", test.name, h2), func(t *testing.T) {
				got := make(chan http.Header, 1)
				server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					got <- r.Header.Clone()
					echo := r.Header.Get("Authorization")
					w.Header().Set("X-Early", echo)
					w.WriteHeader(http.StatusEarlyHints)
					w.Header().Set("X-Echo", "you sent "+echo)
					w.Header().Set("Location", "https://other.example/?a="+echo)
					w.WriteHeader(302)
					w.Header().Set(http.TrailerPrefix+"X-Late", echo)
				})
				w := newWorld(t, 443, intercept)
				if test.scheme == "http" {
					w = newWorld(t, 80, allow)
					w.http(server)
				} else {
					w.https(server)
				}
				w.options.Credentials = []Credential{test.credential}
				w.start()
				r, _ := http.NewRequest("GET", test.scheme+"://allowed.example"+test.path, nil)
				if test.sent != "" {
					r.Header.Set("Authorization", test.sent)
				}
				r.Header.Set("X-Other", placeholder)
				res, err := w.client(h2).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				h := <-got
				if h.Get("Authorization") != test.want || h.Get("X-Other") != placeholder {
					t.Errorf("the server saw %q and %q, want %q", h.Get("Authorization"), h.Get("X-Other"), test.want)
				}
				back := fmt.Sprint(res.Header, res.Trailer)
				if strings.Contains(back, value) || strings.Contains(back, strings.TrimPrefix(basicOf("me:"+value), "Basic ")) {
					t.Errorf("it came back: %s", back)
				}
			})
		}
	}
}

func TestCredentialsThatAreRefused(t *testing.T) {
	good := Credential{Name: "n", Host: "h.example", Scheme: "https", PathPrefix: "/", Header: "Authorization", Value: "v"}
	tests := map[string]func(*Credential){
		"http":              func(c *Credential) { c.Scheme = "http" },
		"no scheme":         func(c *Credential) { c.Scheme = "" },
		"no host":           func(c *Credential) { c.Host = "" },
		"no value":          func(c *Credential) { c.Value = "" },
		"no path":           func(c *Credential) { c.PathPrefix = "" },
		"two lines":         func(c *Credential) { c.Value = "a\r\nb: c" },
		"short placeholder": func(c *Credential) { c.Placeholder = "x" },
	}
	if err := good.checkCredential(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range tests {
		c := good
		spoil(&c)
		if err := c.checkCredential(); err == nil || strings.Contains(err.Error(), "a\r\nb") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
