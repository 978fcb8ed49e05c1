// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// A CA signs certificates for intercepted names. It is made for one run; its key
// exists only in memory and is never handed out.
type CA struct {
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

const (
	lifetime  = 24 * time.Hour // much longer than a run
	clockSkew = time.Hour
	maxLeaves = 1024
)

// NewCA makes a CA with a new key.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the CA's key: %v", err)
	}
	template := certificateTemplate("fumehood gateway of one run")
	template.IsCA, template.MaxPathLenZero = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make the CA's certificate: %v", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the CA's certificate: %v", err)
	}
	return &CA{key: key, cert: cert, leaves: map[string]*tls.Certificate{}}, nil
}

// CertificatePEM returns the CA's certificate, for clients that are to trust it.
func (c *CA) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
}

// leafCertificate returns a certificate for name, a host name or an address.
func (c *CA) leafCertificate(name string) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaf := c.leaves[name]; leaf != nil {
		return leaf, nil
	}
	leaf, err := c.signLeaf(name)
	if err != nil {
		return nil, fmt.Errorf("cannot sign for %q: %v", name, err)
	}
	if len(c.leaves) >= maxLeaves {
		clear(c.leaves)
	}
	c.leaves[name] = leaf
	return leaf, nil
}

func (c *CA) signLeaf(name string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateTemplate("")
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, c.cert.Raw}, PrivateKey: key}, nil
}

// certificateTemplate returns the fields that the CA's certificate and its leaves share.
func certificateTemplate(commonName string) *x509.Certificate {
	now := time.Now()
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never returns an error
	return &x509.Certificate{
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(lifetime),
		BasicConstraintsValid: true,
	}
}
