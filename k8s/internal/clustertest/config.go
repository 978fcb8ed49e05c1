// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"path/filepath"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

const store = "http://" + nodetest.Address + ":2379"

func etcdFlags(dir string) []string {
	const peers = "http://" + nodetest.Address + ":2380"
	return []string{
		"--data-dir=" + dir, "--listen-client-urls=" + store, "--advertise-client-urls=" + store,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
	}
}

func (c *Cluster) serverFlags() []string {
	return []string{
		"--etcd-servers=" + store, "--bind-address=" + nodetest.Address, "--advertise-address=" + nodetest.Address,
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/24",
		"--tls-cert-file=" + c.path("server.crt"), "--tls-private-key-file=" + c.path("server.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--authorization-mode=Node,RBAC", "--allow-privileged", "--enable-admission-plugins=NodeRestriction", "--anonymous-auth=false",
		"--service-account-issuer=https://cluster.test", "--service-account-key-file=" + c.path("ca.key"), "--service-account-signing-key-file=" + c.path("ca.key"),
		"--kubelet-client-certificate=" + c.path("server.crt"), "--kubelet-client-key=" + c.path("server.key"),
		"--kubelet-certificate-authority=" + c.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
	}
}

func (c *Cluster) managerFlags() []string {
	return []string{
		"--kubeconfig=" + c.path("manager.conf"), "--leader-elect=false", "--bind-address=" + nodetest.Address,
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.path("ca.key"), "--root-ca-file=" + c.path("ca.crt"),
	}
}

// kubelet returns the least with which a kubelet runs on a machine that has cgroup v1, no
// CAP_SYS_RESOURCE and a disk that is almost full.
func (c *Cluster) kubelet() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + c.node.Socket,
		"address":                  nodetest.Address, "healthzBindAddress": nodetest.Address,
		"authentication": object{"anonymous": object{"enabled": false}, "webhook": object{"enabled": true}, "x509": object{"clientCAFile": c.path("ca.crt")}},
		"authorization":  object{"mode": "Webhook"},
		"tlsCertFile":    c.path("server.crt"), "tlsPrivateKeyFile": c.path("server.key"),
		"resolvConf": c.path("resolv.conf"), "podLogsDir": c.path("logs"), "volumePluginDir": c.path("plugins"),

		"failCgroupV1": false, "cgroupsPerQOS": false, "cgroupRoot": "/" + filepath.Base(c.node.Dir), // which the node's end removes
		"enforceNodeAllocatable": []string{},
		"oomScoreAdj":            0, "failSwapOn": false, "makeIPTablesUtilChains": false,
		"protectKernelDefaults":         true, // fail instead of changing the machine's
		"localStorageCapacityIsolation": false,
		"imageGCHighThresholdPercent":   100,
		"evictionHard":                  object{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
	}
}
