//go:build linux

package main

// rssUnit is the unit of Rusage.Maxrss in bytes.
const rssUnit = 1024
