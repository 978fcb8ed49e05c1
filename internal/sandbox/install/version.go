// SPDX-License-Identifier: Apache-2.0

package install

// GVisorVersion is the version of gvisor.dev/gvisor that go.mod pins, and the
// only one that an installation may have. A test compares it with go.mod.
const GVisorVersion = "v0.0.0-20260905035102-160fafc42237"
