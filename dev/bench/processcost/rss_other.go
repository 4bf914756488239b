//go:build unix && !linux

package main

// rssUnit is the unit of Rusage.Maxrss in bytes: kilobytes on the BSDs, bytes on macOS. The benchmarks are only compiled there.
const rssUnit = 1
