package discovery

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiskCache_FullDiskLeavesWholeFiles(t *testing.T) {
	dir := smallDisk(t)
	cache := newDiskCache(dir, diskServer)
	require.NoError(t, cache.write(diskSample(), time.Now()))
	full := strings.Repeat("x", 1<<20)
	require.ErrorIs(t, os.WriteFile(filepath.Join(dir, "ballast"), []byte(full), 0o600), syscall.ENOSPC)

	large := diskSample()
	large.Groups[2].Versions[0].Resources[0].Verbs = []string{strings.Repeat("y", 1<<16)}
	files := diskFiles(t, dir)
	require.ErrorIs(t, cache.write(large, time.Now()), syscall.ENOSPC)
	assert.Equal(t, files, diskFiles(t, dir))
	snapshot, err := cache.read(time.Now())
	require.NoError(t, err)
	assert.Equal(t, diskSample().Groups, snapshot.Groups)
}

// smallDisk is a disk that holds the sample and little more.
func smallDisk(t *testing.T) string {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}
