// Package bench does the same work with anykind and with client-go and compares the results: its tests what they
// answer and send, its benchmarks and its command compare what they cost. It is a module of its own, so that programs
// that use anykind never depend on client-go.
package bench
