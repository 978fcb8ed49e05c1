// SPDX-License-Identifier: Apache-2.0

//go:build linux && !e2e

package main

const whole = false
