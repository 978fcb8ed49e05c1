// SPDX-License-Identifier: Apache-2.0

package failure

// readers are all readers, in the order in which reports of one rank are returned.
var readers = []reader{}
