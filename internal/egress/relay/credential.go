// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Credential is added to requests for one host and path, over verified TLS only. The
// sandbox never has Value.
type Credential struct {
	Name       string // its name in logs and messages
	Host       string // "registry.example", or with a port other than 443: "registry.example:8443"
	Scheme     string // must be "https"
	PathPrefix string // "/npm" matches /npm and everything below it; "/" matches all
	// Placeholder is what a program sends in Header and Value replaces. If it is empty,
	// Header is set on every matching request.
	Placeholder string
	Header      string // "Authorization"; "" with a Query
	Query       string // the parameter of the query, in place of a header
	Value       string // with a Placeholder its replacement, else the whole header
}

func (c Credential) checkCredential() error {
	switch {
	case c.Scheme != "https":
		return fmt.Errorf("invalid credential %q: its scheme is not https", c.Name)
	case c.Host == "" || c.Value == "" || (c.Header == "") == (c.Query == ""):
		return fmt.Errorf("invalid credential %q: host, value, and a header or a query parameter must be set", c.Name)
	case c.Query != "" && c.Placeholder == "":
		return fmt.Errorf("invalid credential %q: one of a query has no placeholder", c.Name)
	case !strings.HasPrefix(c.PathPrefix, "/"):
		return fmt.Errorf("invalid credential %q: its path does not begin with /", c.Name)
	case strings.ContainsAny(c.Value, "\r\n\x00"):
		return fmt.Errorf("invalid credential %q: its value is not valid in a header", c.Name)
	case c.Placeholder != "" && len(c.Placeholder) < 8:
		return fmt.Errorf("invalid credential %q: its placeholder is too short", c.Name)
	}
	return nil
}

// coversPath reports whether c is for a path, both as written and decoded.
func (c Credential) coversPath(path, escaped string) bool {
	return isBelowPrefix(path, c.PathPrefix) && isBelowPrefix(escaped, c.PathPrefix)
}

func isBelowPrefix(path, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// insertValue inserts Value and returns every form of it that r now contains.
func (c Credential) insertValue(r *http.Request) []string {
	if c.Query != "" {
		return c.putQuery(r.URL)
	}
	return c.putHeader(r.Header)
}

// putQuery leaves the rest of the query as it is written.
func (c Credential) putQuery(u *url.URL) []string {
	parts := strings.Split(u.RawQuery, "&")
	found := false
	for i, part := range parts {
		key, text, _ := strings.Cut(part, "=")
		name, badName := url.QueryUnescape(key)
		value, badValue := url.QueryUnescape(text)
		if badName == nil && badValue == nil && name == c.Query && strings.Contains(value, c.Placeholder) {
			parts[i] = key + "=" + url.QueryEscape(strings.ReplaceAll(value, c.Placeholder, c.Value))
			found = true
		}
	}
	if !found {
		return nil
	}
	u.RawQuery = strings.Join(parts, "&")
	return append(sensitiveForms(c.Value), url.QueryEscape(c.Value))
}

func (c Credential) putHeader(h http.Header) []string {
	if c.Placeholder == "" {
		h.Set(c.Header, c.Value)
		return sensitiveForms(c.Value)
	}
	var put []string
	values := h.Values(c.Header)
	for i, v := range values {
		switch basic, ok := c.replaceBasicAuth(v); {
		case ok:
			values[i] = basic
			put = append(append(put, strings.TrimPrefix(basic, basicScheme)), sensitiveForms(c.Value)...)
		case strings.Contains(v, c.Placeholder):
			values[i] = strings.ReplaceAll(v, c.Placeholder, c.Value)
			put = append(put, sensitiveForms(c.Value)...)
		}
	}
	return put
}

const basicScheme = "Basic "

// minForm is the minimum length of a part of a value that is searched for in answers:
// shorter parts also occur by chance.
const minForm = 6

// sensitiveForms returns a header's value and the parts of it that are as sensitive as the whole:
// what follows the scheme, and the contents of that.
func sensitiveForms(value string) []string {
	parts := []string{value}
	scheme, token, ok := strings.Cut(value, " ")
	if !ok {
		return parts
	}
	parts = append(parts, strings.TrimSpace(token))
	if plain, err := base64.StdEncoding.DecodeString(parts[1]); err == nil && strings.EqualFold(scheme, "basic") {
		_, password, _ := strings.Cut(string(plain), ":")
		parts = append(parts, string(plain), password)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part != value && len(part) < minForm })
}

// replaceBasicAuth replaces the placeholder in HTTP basic authentication, where base64 hides it.
func (c Credential) replaceBasicAuth(v string) (string, bool) {
	if len(v) < len(basicScheme) || !strings.EqualFold(v[:len(basicScheme)], basicScheme) {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(v[len(basicScheme):]))
	if err != nil || !strings.Contains(string(plain), c.Placeholder) {
		return "", false
	}
	plain = []byte(strings.ReplaceAll(string(plain), c.Placeholder, c.Value))
	return basicScheme + base64.StdEncoding.EncodeToString(plain), true
}

// replacementText returns the text that replaces c's value wherever it would be visible.
func (c Credential) replacementText() string {
	if c.Placeholder != "" {
		return c.Placeholder
	}
	return "[credential " + c.Name + "]"
}
