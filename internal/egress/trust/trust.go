// SPDX-License-Identifier: Apache-2.0

// Package trust has what programs must trust so that the gateway can end their TLS: where they look for
// certificates, the variables that name a file of them, and Java's format.
package trust

import (
	"bytes"
	"os"
	"slices"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Inside is where commands with a network find the certificates to trust.
const Inside = "/etc/fumehood/ca-certificates.crt"

// bundles are the paths where programs look for trusted certificates.
var bundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}

// Bundles returns the paths where programs look for trusted certificates.
func Bundles() []string { return slices.Clone(bundles) }

// variables are those of common tools.
var variables = []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
	"GIT_SSL_CAINFO",
	"CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "npm_config_cafile", "BUNDLE_SSL_CA_CERT", "DENO_CERT", "NIX_SSL_CERT_FILE"}

// Variables returns the variables that name a file of trusted certificates for tools which have
// their own.
func Variables() []string { return slices.Clone(variables) }

// ReadRoots returns the certificates that the operator's own tools trust, in PEM.
func ReadRoots() (string, error) {
	paths := bundles
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		paths = []string{file}
	}
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte("BEGIN CERTIFICATE")) {
			return string(data), nil
		}
	}
	return "", &proposal.StopError{Code: "network.unavailable", Message: "no file of trusted certificates was found",
		Hint: "install ca-certificates, or name a file with SSL_CERT_FILE"}
}
