// SPDX-License-Identifier: Apache-2.0

// Package cluster says how programs reach the API server.
package cluster

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns the configuration in a file or, if its name is empty, that of the pod's service
// account, for which clientcmd alone would warn that it might not work.
func Config(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
