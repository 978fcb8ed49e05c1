// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"testing"

	"github.com/fumehood/fumehood/internal/agents/session/conformance"
)

func TestE2EConformance(t *testing.T) { conformance.Run(t, openPod) }

func TestE2ELanguages(t *testing.T) { conformance.RunLanguages(t, openPod) }
