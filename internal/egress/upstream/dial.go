// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	dialTimeout = 15 * time.Second // for one Dial: connection, TLS and the proxy's answer
	tryTimeout  = 4 * time.Second  // to connect to one of the proxy's addresses
	keepIdle    = 30 * time.Second
	maxHead     = 64 << 10 // of the answer
)

// A RefusedError is a proxy's answer that is not 200.
type RefusedError struct{ Status int }

func (r *RefusedError) Error() string {
	return fmt.Sprintf("the upstream proxy refused the connection: its answer is %d", r.Status)
}

var (
	errCertificate = errors.New("its certificate is not trusted")

	errHead = errors.New("its answer is not the head of an HTTP answer")
	errLong = fmt.Errorf("the head of its answer is longer than %d bytes", maxHead)
)

// A Dialer connects through the proxies of a Config. It may be used by many goroutines.
type Dialer struct {
	config  Config
	roots   *x509.CertPool
	proxied func(*url.URL) (*url.URL, error)
	timeout time.Duration
}

// NewDialer returns a Dialer for proxies that were resolved. roots authenticate those with TLS.
func NewDialer(c Config, roots *x509.CertPool) *Dialer {
	// Only whether a proxy applies is asked; which one, For knows.
	const any = "http://proxy.invalid"
	rules := httpproxy.Config{HTTPProxy: any, HTTPSProxy: any, NoProxy: c.NoProxy}
	return &Dialer{config: c, roots: roots, proxied: rules.ProxyFunc(), timeout: dialTimeout}
}

// ProxyFor returns the proxy for connections to host and port, nil if they are direct.
func (d *Dialer) ProxyFor(host string, port uint16) *Proxy {
	p, scheme := d.config.HTTPS, "https"
	if port == 80 {
		p, scheme = d.config.HTTP, "http"
	}
	if p == nil {
		return nil
	}
	if u, err := d.proxied(&url.URL{Scheme: scheme, Host: joinHostPort(host, port)}); err == nil && u == nil {
		return nil
	}
	return p
}

// UsesProxyFor reports whether a proxy is used for name on one of the usual ports.
func (d *Dialer) UsesProxyFor(name string) bool {
	return d.ProxyFor(name, 443) != nil || d.ProxyFor(name, 80) != nil
}

// HasProxy reports whether there is a proxy at all.
func (d *Dialer) HasProxy() bool { return len(d.config.Proxies()) > 0 }

// Is reports whether a name, or one of its addresses, is one of the proxies itself. A program
// that could connect to it would reach everything that the proxy does.
func (d *Dialer) Is(name string, addrs []netip.Addr, port uint16) bool {
	return slices.ContainsFunc(d.config.Proxies(), func(p *Proxy) bool {
		same := func(a netip.Addr) bool { return slices.Contains(p.Addrs, a.Unmap()) }
		return p.Port == port && (p.Host == name || slices.ContainsFunc(addrs, same))
	})
}

func joinHostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// Dial has p connect to host and port. The connection is as good as a direct one: nothing of
// what follows the proxy's answer was read. An answer other than 200 is a *Refused. Dial takes
// at most 15 seconds, and reads at most 64 KiB.
func (d *Dialer) Dial(ctx context.Context, p *Proxy, host string, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	conn, err := d.dialProxy(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the upstream proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = p.requestTunnel(conn, joinHostPort(host, port))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	var refused *RefusedError
	switch {
	case err == nil:
		return conn, nil
	case errors.As(err, &refused):
	case ctx.Err() != nil:
		err = errors.New("the upstream proxy did not answer in time")
	default:
		err = fmt.Errorf("the upstream proxy did not connect: %w", err)
	}
	conn.Close()
	return nil, err
}

// dialProxy connects to the first of p's addresses that answers.
func (d *Dialer) dialProxy(ctx context.Context, p *Proxy) (net.Conn, error) {
	dialer := net.Dialer{Timeout: tryTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepIdle / 3, Count: 3}}
	dialer.SetMultipathTCP(false)
	failed := errors.New("it has no address")
	for _, a := range p.Addrs {
		conn, err := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(a, p.Port).String())
		if err == nil {
			return d.startTLS(ctx, p, conn)
		}
		failed = err
		if op, ok := errors.AsType[*net.OpError](err); ok {
			failed = op.Err // without the address, which programs see
		}
	}
	return nil, failed
}

func (d *Dialer) startTLS(ctx context.Context, p *Proxy, conn net.Conn) (net.Conn, error) {
	if !p.TLS {
		return conn, nil
	}
	secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: d.roots, ServerName: p.Host})
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			err = errCertificate // the error has the proxy's name, which programs would see
		}
		return nil, err
	}
	return secured, nil
}

// requestTunnel asks for a connection to authority and reads the answer.
func (p *Proxy) requestTunnel(conn net.Conn, authority string) error {
	var ask strings.Builder
	fmt.Fprintf(&ask, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: fumehood\r\n", authority, authority)
	if p.Authorization != "" {
		fmt.Fprintf(&ask, "Proxy-Authorization: %s\r\n", p.Authorization)
	}
	if _, err := io.WriteString(conn, ask.String()+"\r\n"); err != nil {
		return err
	}
	head, err := readHead(conn)
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return errHead // err may quote what the proxy sent, such as the credentials
	}
	if answer.StatusCode != http.StatusOK {
		return &RefusedError{answer.StatusCode}
	}
	return nil
}

// readHead reads byte by byte, because what follows belongs to the connection.
func readHead(r io.Reader) ([]byte, error) {
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if len(head) == maxHead {
			return nil, errLong
		}
		if _, err := io.ReadFull(r, one); err != nil {
			return nil, err
		}
		head = append(head, one[0])
	}
	return head, nil
}
