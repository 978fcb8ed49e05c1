// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fumehood/fumehood/k8s/internal/nodetest"
)

// Version is that of Kubernetes. It is not the newest of the proxy, nor that of the CRI's library
// in go.mod: kubelets never are.
const Version = "v1.36.3"

// build returns the path of a program of Kubernetes, which it builds if the user's cache does not
// have it. The first one takes minutes: all five took ten on two busy processors.
func build(ctx context.Context, name string) (string, error) {
	return nodetest.Cached("kubernetes-"+Version, name, func(dir string) error {
		source, err := download(ctx)
		if err != nil {
			return err
		}
		if err := writeModule(source, dir); err != nil {
			return err
		}
		return nodetest.Run(ctx, source, []string{"CGO_ENABLED=0", "GOWORK=off"}, "go", "build",
			"-buildvcs=false", "-mod=mod", "-modfile="+filepath.Join(dir, "go.mod"), "-o", filepath.Join(dir, name),
			"-ldflags=-s -w -X k8s.io/component-base/version.gitVersion="+Version, "./cmd/"+name)
	})
}

// download returns the directory of Kubernetes' source in the module cache.
func download(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "k8s.io/kubernetes@"+Version)
	cmd.Dir = os.TempDir() // outside any module
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot download Kubernetes: %w\n%s", err, out)
	}
	var module struct{ Dir string }
	return module.Dir, json.Unmarshal(out, &module)
}

// staging matches the replacements of Kubernetes' go.mod whose directories the module lacks.
var staging = regexp.MustCompile(`=> \./staging/src/(\S+)`)

// writeModule writes the go.mod of Kubernetes to dir, with published modules in place of those
// that only its repository has, and its go.sum.
func writeModule(source, dir string) error {
	text, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	published := staging.ReplaceAll(text, []byte("=> $1 v0"+strings.TrimPrefix(Version, "v1")))
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), published, 0o600); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600)
}

// etcd returns the path of the distribution's etcd, which it fetches if the user's cache does not
// have it. The package is not installed.
func etcd(ctx context.Context) (string, error) {
	return nodetest.Cached("etcd-server", "usr/bin/etcd", func(dir string) error {
		return nodetest.Run(ctx, dir, nil, "sh", "-ec",
			"apt-get download -qq etcd-server; dpkg-deb -x etcd-server_*.deb .")
	})
}

// Template returns what helm makes of the chart in a directory, for a release fumehood.
func Template(ctx context.Context, chart string, args ...string) (string, error) {
	program, err := Helm(ctx)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, append([]string{"template", "fumehood", chart}, args...)...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("helm template: %w: %s", err, failed.Stderr)
	}
	return string(out), err
}

// Helm returns the path of helm, which it builds if the user's cache does not have it.
func Helm(ctx context.Context) (string, error) {
	return nodetest.Cached("helm-v4.3.1", "helm", func(dir string) error {
		return nodetest.Run(ctx, os.TempDir(), []string{"CGO_ENABLED=0", "GOBIN=" + dir}, "go", "install",
			"helm.sh/helm/v4/cmd/helm@v4.3.1")
	})
}
