// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/base64"
	"errors"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// A place is a parsed URL of a tool's configuration.
type place struct {
	origin     Origin
	clean      string // the URL without user name and password
	credential *Credential
}

// readURL parses an http or https URL. Its errors quote no part of it: an invalid URL
// may have a user name and password anywhere, and a valid one a token in its path.
func readURL(text string) (place, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return place{}, errors.New("invalid registry URL: it cannot be parsed")
	}
	user := u.User
	u.User = nil
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return place{}, errors.New("invalid registry URL: want http or https and a host")
	}
	if u.RawQuery != "" || u.Fragment != "" || strings.ContainsFunc(u.String(), needsQuoting) {
		return place{}, errors.New("invalid registry URL: it has more than a host and a path")
	}
	port, err := portOf(u)
	if err != nil {
		return place{}, err
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	p := place{clean: u.String(), origin: Origin{
		Scheme: u.Scheme, Host: host, Port: port, Path: path.Clean("/" + u.EscapedPath()),
	}}
	if user != nil && u.Scheme == "https" {
		p.credential = p.origin.basicAuthorization(user)
	}
	return p, nil
}

// ParseOrigin reads an http or https URL without a user name. Its errors quote no part of it.
func ParseOrigin(text string) (Origin, error) {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return Origin{}, errors.New("invalid registry URL: it has a user name or a password")
	}
	p, err := readURL(text)
	return p.origin, err
}

// String returns o as a URL.
func (o Origin) String() string {
	return o.Scheme + "://" + net.JoinHostPort(o.Host, strconv.Itoa(o.Port)) + o.Path
}

// needsQuoting reports whether c would need quoting in one of the files that a URL is written to.
func needsQuoting(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"'<>&\|$#`, c) }

func portOf(u *url.URL) (int, error) {
	switch {
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return 0, errors.New("invalid registry URL: no such port")
		}
		return int(port), nil
	case u.Scheme == "http":
		return 80, nil
	}
	return 443, nil
}

func (o Origin) authorizationFor(value string) *Credential {
	return &Credential{Scheme: o.Scheme, Host: o.Host, Port: o.Port, Path: o.Path, Header: "Authorization",
		Value: value}
}

func (o Origin) basicAuthorization(user *url.Userinfo) *Credential {
	password, _ := user.Password()
	text := user.Username() + ":" + password
	return o.authorizationFor("Basic " + base64.StdEncoding.EncodeToString([]byte(text)))
}

// addPlace adds p to r's places, with an origin that may be wider than p.
func (r *Registry) addPlace(p place, o Origin) {
	for _, have := range r.Origins {
		if have == o {
			return
		}
	}
	r.Origins = append(r.Origins, o)
	if p.credential != nil {
		c := *p.credential
		c.Path = o.Path
		r.addCredential(c)
	}
}

// addCredential keeps only the first credential for a place: more specific sources come
// first.
func (r *Registry) addCredential(c Credential) {
	c.Registry = r.Name
	for _, have := range r.Credentials {
		if have.Host == c.Host && have.Port == c.Port && have.Path == c.Path {
			return
		}
	}
	r.Credentials = append(r.Credentials, c)
}

// addURL is addPlace for a URL whose origin is the URL itself.
func (r *Registry) addURL(text string) (place, error) {
	p, err := readURL(text)
	if err == nil {
		r.addPlace(p, p.origin)
	}
	return p, err
}
