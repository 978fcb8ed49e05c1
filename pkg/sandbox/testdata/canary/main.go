// SPDX-License-Identifier: Apache-2.0

// Command canary says that it ran. No test wants that.
package main

import "os"

func main() { os.Stdout.WriteString("CANARY\n") }
