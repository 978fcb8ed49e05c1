// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package conformance_test

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/session/conformance"
)

func TestE2ELanguages(t *testing.T) { conformance.RunLanguages(t, openLocal) }
