// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package install_test

import "testing"

func TestE2EConcurrentFindsReallyBuildOnce(t *testing.T) { buildsOnce(t) }
