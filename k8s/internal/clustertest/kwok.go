// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

const (
	kwokVersion = "v0.8.0"
	kwokModule  = "sigs.k8s.io/kwok/cmd/kwok@" + kwokVersion
)

// kwokConfig makes nodes ready, pods running and deleted pods go away, all at once. The address of a
// pod is its UID, as the digits of an IPv6 address: no other pod ever has it. Nodes write their
// status every 20 to 25 s. They have no leases: when kwok starts again, it would wait for those of the
// process before it, and miss pods that change meanwhile.
const kwokConfig = `
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options: {manageAllNodes: true, cidr: 10.0.0.0/8, nodePlayStageParallelism: 16, podPlayStageParallelism: 16, podsOnNodeSyncParallelism: 16}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: '.status.conditions.[] | select(.type == "Ready") | .status', operator: NotIn, values: ["True"]}
  next:
    statusTemplate: |
      conditions:
      {{ range NodeConditions }}
      - {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }}, message: {{ .message | Quote }}, lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-heartbeat}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: '.status.conditions.[] | select(.type == "Ready") | .status', operator: In, values: ["True"]}
  delay: {durationMilliseconds: 20000, jitterDurationMilliseconds: 25000}
  next:
    statusTemplate: |
      conditions:
      {{ range NodeConditions }}
      - {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }}, message: {{ .message | Quote }}, lastHeartbeatTime: {{ Now | Quote }}}
      {{ end }}
  immediateNextStage: true
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      {{ $address := regexReplaceAll "(....)" (replace "-" "" .metadata.uid) "${1}:" | trimSuffix ":" | Quote }}
      phase: Running
      startTime: {{ Now | Quote }}
      podIP: {{ $address }}
      podIPs: [{ip: {{ $address }}}]
      conditions:
      - {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
      - {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
      - {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - {name: {{ .name }}, image: {{ .image | Quote }}, ready: true, restartCount: 0, state: {running: {startedAt: {{ Now | Quote }}}}}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next: {delete: true}
`

// kwok returns the path of kwok, which it builds if the user's cache does not have it.
func kwok(ctx context.Context) (string, error) {
	return nodetest.Cached("kwok-"+kwokVersion, "kwok", func(dir string) error {
		return nodetest.Run(ctx, os.TempDir(), []string{"CGO_ENABLED=0", "GOBIN=" + dir}, "go", "install", kwokModule)
	})
}

// Simulate starts kwok and makes nodes, each with room for perNode pods that request a processor.
// Nothing runs in their pods, which are ready as soon as they have a node.
func (c *Cluster) Simulate(ctx context.Context, nodes, perNode int) error {
	path, err := kwok(ctx)
	if err != nil {
		return err
	}
	identity, err := c.Identity("kwok", "kwok", "system:masters")
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path("kwok.yaml"), []byte(kwokConfig), 0o600); err != nil {
		return err
	}
	if err := c.Run("kwok", path, "--config="+c.path("kwok.yaml"), "--kubeconfig="+identity, "--v=WARN"); err != nil {
		return err
	}
	var list strings.Builder
	for i := range nodes {
		room := fmt.Sprintf(`{"cpu": "%d", "memory": "64Gi", "pods": "110"}`, perNode)
		fmt.Fprintf(&list, "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"node-%d\"}, \"status\": {\"capacity\": %s, \"allocatable\": %s}}\n---\n", i, room, room)
	}
	var out bytes.Buffer
	if err := c.Stream(ctx, list.String(), &out, "create", "-f", "-"); err != nil {
		return fmt.Errorf("cannot make nodes: %w: %s", err, out.String())
	}
	return nil
}
