// SPDX-License-Identifier: Apache-2.0

// Command canary prints that it ran, which means that a test fails.
package main

import "os"

func main() { os.Stdout.WriteString("CANARY\n") }
