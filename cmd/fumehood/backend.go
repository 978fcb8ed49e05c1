// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/cli"
	"github.com/fumehood/fumehood/internal/agents/session/pods"
)

// backendFlags say where the sandboxes of a server are.
type backendFlags struct {
	kind string
	pods.Settings
	own []string // flags that have a meaning for sandboxes elsewhere
}

const (
	localBackend      = "local"
	kubernetesBackend = "kubernetes"
)

// defineFlags adds the flags. own are those of cmd that do not describe sandboxes on this host.
func (s *backendFlags) defineFlags(cmd *cobra.Command, own ...string) {
	s.own = own
	cmd.Flags().StringVar(&s.kind, "backend", localBackend,
		"`WHERE` where sandboxes run: local, or kubernetes: each in a pod, whose node has the policy and the log. See docs/kubernetes/sessions.md")
	cli.CompleteValues(cmd, "backend", localBackend, kubernetesBackend)
	cli.DefineGroup(cmd, "Kubernetes flags", func(f *pflag.FlagSet) {
		f.StringVar(&s.Socket, "claims", "/run/fumehood/claims.sock",
			"`SOCKET` of fumehood-claims, which claims the pods")
		f.StringVar(&s.Certificates, "certificates", "/etc/fumehood/tls",
			"`DIR` directory with tls.crt, tls.key and ca.crt, for the connections to pods")
		f.StringVar(&s.Tenant, "namespace", "",
			"`NAME` Kubernetes namespace of clients whose token has no tenant=NAMESPACE")
		f.IntVar(&s.Port, "session-port", 8443, "`PORT` where pods answer")
	})
	cli.CompleteDirectories(cmd, "certificates")
	cli.NoFiles(cmd, "namespace", "session-port")
}

func (s *backendFlags) isKubernetes() bool { return s.kind == kubernetesBackend }

// findMisuse returns which flag has no meaning with the backend, or "".
func (s *backendFlags) findMisuse(f *pflag.FlagSet) (why string) {
	if s.kind != localBackend && s.kind != kubernetesBackend {
		return "--backend must be local or kubernetes"
	}
	elsewhere := []string{"claims", "certificates", "namespace", "session-port"}
	f.Visit(func(x *pflag.Flag) {
		switch remote := slices.Contains(elsewhere, x.Name); {
		case remote && !s.isKubernetes():
			why = "--" + x.Name + " needs --backend kubernetes"
		case !remote && s.isKubernetes() && !slices.Contains(s.own, x.Name) && x.Name != "backend":
			why = "--" + x.Name + " is for sandboxes on this host: with --backend kubernetes, the nodes' configuration decides"
		}
	})
	return why
}
