//go:build linux && (amd64 || arm64)

// Package pagecache reads programs into the kernel's page cache.
package pagecache

import (
	"os"
	"syscall"
)

const (
	fadvDontNeed     = 4
	madvPopulateRead = 22 // since Linux 5.14
)

// ReadHuge reads a program into the page cache as huge pages. Processes that start later map its text with them: kube-apiserver has 60 MB
// of it, and a page table of small pages is expensive on virtual machines without hardware support for page tables. Errors are
// ignored: the program runs with small pages, too.
func ReadHuge(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return
	}
	// Small pages in the cache would stay. Those of running processes do.
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, fadvDontNeed, 0, 0); errno != 0 {
		return
	}
	text, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return
	}
	if syscall.Madvise(text, syscall.MADV_HUGEPAGE) == nil {
		_ = syscall.Madvise(text, madvPopulateRead)
	}
	_ = syscall.Munmap(text)
}
