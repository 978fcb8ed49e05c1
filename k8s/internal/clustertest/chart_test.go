// SPDX-License-Identifier: Apache-2.0

//go:build node || cluster

package clustertest_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fumehood/fumehood/k8s/internal/clustertest"
)

const deploy = "../../deploy/"

// The two releases, with all parts.
var (
	nodes   = []string{"--namespace=fumehood-node", "--values=testdata/node.yaml"}
	serving = []string{"--namespace=fumehood-serve", "--values=testdata/serve.yaml"}
)

// render returns what helm makes of the chart.
func render(t *testing.T, args ...string) string {
	t.Helper()
	out, err := clustertest.Template(t.Context(), deploy+"chart", args...)
	check(t, err)
	return out
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type object = map[string]any

// objects returns the documents of a text of YAML.
func objects(t *testing.T, text string) (list []object) {
	t.Helper()
	for d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if o != nil {
			list = append(list, o)
		}
	}
}
