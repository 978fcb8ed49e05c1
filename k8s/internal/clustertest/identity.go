// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

// An authority issues the certificates of one cluster.
type authority struct {
	dir  string // of its files
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority writes ca.crt and ca.key to dir.
func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir}
	template := certificate("cluster")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	var err error
	a.cert, a.key, err = a.sign("ca", template)
	return a, err
}

func certificate(name string, groups ...string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name, Organization: groups},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(nodetest.Address), net.ParseIP(service)},
	}
}

// issue writes file.crt and file.key: who their holder is, as a client and as a server at the
// node's address.
func (a *authority) issue(file, name string, groups ...string) error {
	_, _, err := a.sign(file, certificate(name, groups...))
	return err
}

// sign writes a certificate, signed by the authority or, if it is the first, by itself.
func (a *authority) sign(file string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(a.write(file+".crt", "CERTIFICATE", cert), a.write(file+".key", "EC PRIVATE KEY", private))
	parsed, parseErr := x509.ParseCertificate(cert)
	return parsed, key, errors.Join(err, parseErr)
}

func (a *authority) write(name, kind string, data []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600)
}

type object = map[string]any

// client issues a certificate and writes file.conf, with which programs reach the API server.
func (a *authority) client(file, name string, groups ...string) error {
	if err := a.issue(file, name, groups...); err != nil {
		return err
	}
	path := func(name string) string { return filepath.Join(a.dir, name) }
	return writeJSON(path(file+".conf"), object{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []object{{"name": "default", "cluster": object{"server": server, "certificate-authority": path("ca.crt")}}},
		"users":    []object{{"name": "default", "user": object{"client-certificate": path(file + ".crt"), "client-key": path(file + ".key")}}},
		"contexts": []object{{"name": "default", "context": object{"cluster": "default", "user": "default"}}},
	})
}

// writeJSON writes a file that Kubernetes reads as YAML.
func writeJSON(path string, o object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
