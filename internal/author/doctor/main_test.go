// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/fumehood/fumehood/internal/kit/roottest"
)

func TestMain(m *testing.M) { roottest.RunTests(m) }
