//go:build !linux || (!amd64 && !arm64)

// Package pagecache reads programs into the kernel's page cache.
package pagecache

// ReadHuge does nothing: the calls are Linux'.
func ReadHuge(string) {}
