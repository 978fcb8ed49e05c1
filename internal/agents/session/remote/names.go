// SPDX-License-Identifier: Apache-2.0

package remote

// Names in certificates, which may have a wildcard in place of the first label.
const (
	nodeNames   = ".nodes.fumehood.dev"
	clientNames = ".sessions.fumehood.dev"
)

// ServerName is the DNS name in the certificate of a node of Kubernetes, whose pods have sessions.
func ServerName(node string) string { return node + nodeNames }

// ClientName is the DNS name in the certificate of a client that may use the sessions of pods of a
// namespace.
func ClientName(namespace string) string { return namespace + clientNames }
