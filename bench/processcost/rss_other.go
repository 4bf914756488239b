//go:build unix && !linux

package main

// rssUnit is the unit of Rusage.Maxrss in bytes: kilobytes on the BSDs, bytes on macOS, where the benchmarks are compiled only.
const rssUnit = 1
