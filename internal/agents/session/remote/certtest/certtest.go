// SPDX-License-Identifier: Apache-2.0

// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates, which hold for an hour.
type Authority struct {
	Pool *x509.CertPool // with its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an Authority, whose certificate signs itself.
func NewAuthority(t testing.TB) Authority {
	t.Helper()
	key, der := Authority{}.signCertificate(t,
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := Authority{x509.NewCertPool(), cert, key}
	a.Pool.AddCert(cert)
	return a
}

func (a Authority) signCertificate(t testing.TB, c *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// NewLeaf returns the certificate of a server or client with a DNS name.
func (a Authority) NewLeaf(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, der := a.signCertificate(t,
		&x509.Certificate{DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Write writes a Leaf as tls.crt and tls.key into dir, and the certificate of another Authority as
// ca.crt: what a Kubernetes secret of the type kubernetes.io/tls has.
func (a Authority) Write(t testing.TB, dir, name string, other Authority) {
	t.Helper()
	leaf := a.NewLeaf(t, name)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key}, "ca.crt": {Type: "CERTIFICATE", Bytes: other.cert.Raw},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
