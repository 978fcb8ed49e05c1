// SPDX-License-Identifier: Apache-2.0

package grammar

import (
	"context"
	"testing"
)

func TestX(t *testing.T) {
	for _, c := range [][2]string{{"python", "import os as x\nprint(x.system('id'), -1)\n"}, {"javascript", "const {a} = require('fs'); eval(`x`)"}, {"typescript", "import x from 'y'; let a: string = <any>x.b"}} {
		tree, err := Parse(context.Background(), c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		for n := range tree.All() {
			t.Log(n.ID(), n.Kind(), n.Field(), n.Text(), n.Wrong())
		}
	}
}
